#include "nn/past/segment_past.hpp"

#include "core/error.hpp"

namespace engram {

SegmentPast& segment_past(LayerPast& past) {
  auto* const found = dynamic_cast<SegmentPast*>(&past);
  if (found == nullptr) throw Error("past: this family needs memories of segments, got another past");
  return *found;
}

}  // namespace engram
