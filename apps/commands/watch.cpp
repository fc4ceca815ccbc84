#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/page_arguments.hpp"
#include "apps/studies/page/page_server.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct WatchArguments {
  PageArguments page;
  int port = 0;
};

void run_watch(const WatchArguments& arguments) {
  if (!has_page_server())
    throw NotAvailable(
        "watch: this program was built without cpp-httplib, which serves pages\n  engram report writes the same page "
        "as a "
        "file; libcpp-httplib-dev and a new build give the server");
  LivePage page(arguments.page.runs, {.read = [&arguments] { return arguments.page.read("watch"); },
                                      .study = [&arguments](PageRun& run) { arguments.page.study(run); }});
  PageServer server(page, arguments.port);
  print(fmt::format("http://127.0.0.1:{}/\nCtrl-C ends it; the runs go on.\n", server.port()));
  // A signal ends it as it ends any program: there is nothing to save.
  server.run();
}

}  // namespace

Command* add_watch_command(Command& program) {
  Command* command = program.add_subcommand("watch", "show runs in a browser while they are trained");
  const auto arguments = std::make_shared<WatchArguments>();
  arguments->page.add_to(*command);
  constexpr int kLastPort = 65535;
  command->add_option("--port", arguments->port, "of this machine; 0: one that is free")
      ->within(0, kLastPort)
      ->capture_default_str();
  command->footer(
      "It prints the address. Only this machine can open it, and it only shows: nothing can be changed through it. "
      "Losses and states follow the runs; what needs the models is of their weights when the page was made, or of a "
      "run's first checkpoint.");
  command->callback([arguments] { run_watch(*arguments); });
  return command;
}

}  // namespace engram
