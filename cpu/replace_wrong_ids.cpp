#include "core/kernels/replace_wrong_ids.hpp"

#include <algorithm>

#include "core/wrong_ids.hpp"

namespace engram::cpu {
namespace {

void replace_wrong_ids(Step&, std::int64_t below, std::int64_t lookup, Tensor& ids, Tensor& report) {
  auto* const id = ids.data<std::int64_t>();
  std::int64_t& first = report.data<std::int64_t>()[0];
  for (std::int64_t place = 0; place < ids.count(); ++place) {
    if (id[place] >= 0 && id[place] < below) continue;
    id[place] = 0;
    first = std::min(first, lookup << WrongIds::kPlaceBits | place);
  }
}

const bool bound = kernels::replace_wrong_ids.bind(DeviceKind::cpu, &replace_wrong_ids);

}  // namespace
}  // namespace engram::cpu
