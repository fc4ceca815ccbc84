/// What ranks end with is said once.

#include "apps/terminal/one_voice.hpp"

#include <fcntl.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/apps/terminal/terminal_process.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::one_voice_test {
namespace {

/// A rank of which something may be on its way at the end.
class Unfinished final : public Communicator {
 public:
  Unfinished(Communicator& ranks, bool can_end) : ranks_(&ranks), can_end_(can_end) {}
  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  std::string place(int rank) const override { return ranks_->place(rank); }
  std::unique_ptr<Transfer> start_exchange(const void*, PartEnds, void*, PartEnds) override { return nullptr; }
  std::unique_ptr<Transfer> start_gather(void*, PartEnds) override { return nullptr; }
  void gather_host(const void*, std::size_t, void*) override {}
  void collect_host(void*, PartEnds) override {}
  bool all_end_with(std::string_view reason, double seconds) override { return ranks_->all_end_with(reason, seconds); }
  bool can_end() const override { return can_end_; }
  [[noreturn]] void abort(int code) override {
    ranks_->abort(code);
    throw Error("nothing returns from an abort");
  }

 private:
  Communicator* ranks_;
  bool can_end_;
};

struct Ended {
  std::string said;                   ///< by all, on stderr
  std::vector<std::string> how = {};  ///< each rank: its exit code, or why all are ended
};

/// What comes of it when each of three ranks ends with what `ending` says of it.
Ended ended(const std::function<Ending(const Communicator&)>& ending, double seconds = 30, bool can_end = true) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "stderr";
  Ended all{.said = {}, .how = std::vector<std::string>(3)};
  {
    const OtherStderr other(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    run_ranks(3, [&](Communicator& thread) {
      Unfinished ranks(thread, can_end);
      std::string& how = all.how[static_cast<std::size_t>(ranks.rank())];
      try {
        how = text(end_with_one_voice(ranks, ending(ranks), seconds));
      } catch (const RankError& error) {
        how = error.what();
      }
    });
  }
  all.said = get_file(file);
  return all;
}

TEST_CASE("one voice: what all ranks end with is said once, by none of them") {
  const Ended all = ended([](const Communicator&) { return Ending{2, "error: ", "there is no such file"}; });
  CHECK(all.said == "engram: error: there is no such file\n");
  CHECK(all.how == std::vector<std::string>(3, "2"));
  CHECK(ended([](const Communicator&) { return Ending{}; }).said.empty());
}

TEST_CASE("one voice: a rank that failed is named once, by whoever heard of it") {
  const Ended all = ended([](const Communicator& ranks) {
    return Ending{1, "error: ", ranks.rank() == 1 ? "out of memory" : ranks.name(1) + ": out of memory"};
  });
  CHECK(all.said == "engram: error: rank 1 (thread 1): out of memory\n");
  CHECK(all.how == std::vector<std::string>(3, "1"));
}

TEST_CASE("one voice: who ends alone says so with its name, and ends all with its code") {
  const Ended all = ended(
      [](const Communicator& ranks) {
        return ranks.rank() == 1 ? Ending{2, "error: ", "out of memory"} : Ending{};
      },
      0.01);
  CHECK(all.said == "engram: error: rank 1 (thread 1): out of memory\n");
  CHECK(all.how == std::vector<std::string>{"0", "ranks: aborted with code 2", "0"});
  // Of two that come to the same the first one speaks.
  const Ended two = ended(
      [](const Communicator& ranks) {
        return ranks.leads() ? Ending{} : Ending{2, "error: ", "out of memory"};
      },
      0.2);
  CHECK(two.said == "engram: error: rank 1 (thread 1): out of memory\n");
  CHECK(two.how == std::vector<std::string>{"0", "ranks: aborted with code 2",
                                            "ranks: another one says what all do, and ends them"});
}

TEST_CASE("one voice: with something on its way rank 0 speaks and ends all at once, with their code") {
  const Ended all = ended([](const Communicator&) { return Ending{130, "", "interrupted"}; }, 30, /*can_end=*/false);
  CHECK(all.said == "engram: interrupted\n");
  CHECK(all.how == std::vector<std::string>{"ranks: aborted with code 130", "130", "130"});
}

}  // namespace
}  // namespace engram::harness::one_voice_test
