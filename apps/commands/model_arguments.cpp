#include "apps/commands/model_arguments.hpp"

#include "apps/commands/shared_options.hpp"
#include "apps/run/model/rank_share.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace engram {

void RunArguments::add_run(Command& command, const std::string& help) {
  command.add_option("run", run, help)->required();
}

void RunArguments::add_best(Command& command) {
  command.add_flag("--best", best_, "the run's best checkpoint instead of the newest");
}

void ModelArguments::add_options(Command& command, bool any_dtype) {
  add_best(command);
  add_device_option(command, device_);
  any_dtype_ = any_dtype;
  if (any_dtype)
    command.add_option("--dtype", dtype_, "f32, bf16 (operands of products) or f64 [f32, on a card bf16]")
        ->suggest({"f32", "bf16", "f64"});
  add_threads_option(command, threads_);
}

void ModelArguments::divide_machine(Communicator& ranks) {
  const RankShare share = share_of(ranks);
  device_ = text(device_of_rank(device_, share));
  threads_ = threads_of_rank(ranks, share, threads_);
  log(LogLevel::info, share_text(share, ranks.size(), threads_, cores_of_host()));
}

namespace {

/// Of the parameters.
DType stored_dtype(std::string_view command, const std::string& name) {
  const DType dtype = name.empty() ? DType::f32 : dtype_option(command, name, true);
  return dtype == DType::bf16 ? DType::f32 : dtype;
}

}  // namespace

OpenedModel::OpenedModel(const ModelArguments& arguments, std::string_view command, const TrainedModel::Adapt& adapt)
    : runtime(parse_device(arguments.device_), arguments.threads_),
      trained(arguments.run, arguments.kind(), runtime, stored_dtype(command, arguments.dtype_), adapt) {
  if (arguments.any_dtype_)
    runtime.step().set_products(products_option(arguments.dtype_, runtime.backend().device().kind));
}

data::DataSet OpenedModel::open_data(const std::string& folder) const {
  data::DataSet data = data::DataSet::open(folder);
  data.require_vocabulary(trained.vocabulary(), text("the checkpoint '", trained.path().string(), "'"));
  return data;
}

}  // namespace engram
