#include "nn/optim/make_optimizer.hpp"

#include "core/error.hpp"
#include "nn/optim/adagrad.hpp"
#include "nn/optim/adam.hpp"
#include "nn/optim/sgd.hpp"

namespace engram {

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, ParameterStore& store, Step& step,
                                          const UpdateRanks& with) {
  options.check();
  switch (options.kind) {
    case OptimizerKind::adagrad:
      return std::make_unique<Adagrad>(options, store, step, with);
    case OptimizerKind::adam:
      return std::make_unique<Adam>(options, store, step, with);
    case OptimizerKind::sgd:
      return std::make_unique<Sgd>(options, store, step, with);
  }
  throw UsageError("optimizer: unknown kind");
}

}  // namespace engram
