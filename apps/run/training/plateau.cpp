#include "apps/run/training/plateau.hpp"

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"

namespace engram {

void PlateauWatch::add(double bits) {
  // Creeping along by less than the margin at a time is a plateau too, so only real steps move the mark.
  if (!begun_ || bits < best_ - margin_) {
    best_ = bits;
    begun_ = true;
    waited_ = 0;
  } else {
    ++waited_;
  }
}

nlohmann::json PlateauWatch::state() const { return {{"best", best_}, {"begun", begun_}, {"waited", waited_}}; }

void PlateauWatch::restore(const nlohmann::json& state) {
  try {
    state.at("best").get_to(best_);
    state.at("begun").get_to(begun_);
    waited_ = integer_of<std::int64_t>(state.at("waited"));
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(text("plateau watch: a saved state must have its three members, got ", state.dump()));
  }
}

}  // namespace engram
