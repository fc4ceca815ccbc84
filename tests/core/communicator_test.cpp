#include "core/communicator.hpp"

#include <array>

#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::communicator_test {
namespace {

/// What every rank's body returned.
std::vector<std::string> on_ranks(int count, const std::function<std::string(Communicator&)>& body) {
  std::vector<std::string> results(static_cast<std::size_t>(count));
  run_ranks(count, [&](Communicator& ranks) { results[static_cast<std::size_t>(ranks.rank())] = body(ranks); });
  return results;
}

/// The message of what it throws, with its class; "" when it throws nothing.
template <class Call>
std::string thrown_by(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return text("usage: ", error.what());
  } catch (const NotFiniteError& error) {
    return text("not finite: ", error.what());
  } catch (const RankError& error) {
    return text("rank: ", error.what());
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("ranks: texts of any length, and whether something is so anywhere", "[ranks]") {
  const auto said = on_ranks(3, [](Communicator& ranks) {
    const std::string own(static_cast<std::size_t>(3 * ranks.rank()), static_cast<char>('a' + ranks.rank()));
    std::string all;
    for (const std::string& one : ranks.gather_texts(own)) all += one + ".";
    return text(all, ranks.any(ranks.rank() == 2), ranks.any(false));
  });
  for (const std::string& one : said) CHECK(one == ".bbb.cccccc.truefalse");
  OneRank alone;
  CHECK(alone.gather_texts("me") == std::vector<std::string>{"me"});
  CHECK(alone.any(true));
  CHECK_FALSE(alone.any(false));
}

TEST_CASE("ranks: parts of a buffer are collected on rank 0, empty ones too", "[ranks]") {
  const std::array<std::size_t, 4> ends{3, 3, 5, 6};
  const auto found = on_ranks(4, [&](Communicator& ranks) {
    std::string all = "......";
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i < ends[static_cast<std::size_t>(ranks.rank())] &&
          (ranks.leads() || i >= ends[static_cast<std::size_t>(ranks.rank()) - 1]))
        all[i] = static_cast<char>('0' + ranks.rank());
    ranks.collect_host(all.data(), ends);
    return all;
  });
  CHECK(found[0] == "000223");
}

TEST_CASE("ranks: what throws on one throws on all, with one message", "[ranks]") {
  const auto told = [](const std::function<void(Communicator&)>& work) {
    return on_ranks(3, [&](Communicator& ranks) { return thrown_by([&] { together(ranks, [&] { work(ranks); }); }); });
  };
  CHECK(told([](Communicator&) {}) == std::vector<std::string>{"", "", ""});
  CHECK(told([](Communicator&) { throw UsageError("no"); }) ==
        std::vector<std::string>{"usage: no", "usage: no", "usage: no"});
  CHECK(told([](Communicator& ranks) {
          if (ranks.leads()) throw UsageError("no");
        }) == std::vector<std::string>{"usage: no", "usage: no", "usage: no"});
  CHECK(told([](Communicator& ranks) {
          if (ranks.leads()) throw FileError("no");
        }) == std::vector<std::string>{"no", "rank: no", "rank: no"});
  CHECK(told([](Communicator& ranks) {
          if (ranks.leads()) throw NotFiniteError("no");
        }) == std::vector<std::string>{"not finite: no", "not finite: no", "not finite: no"});
  const std::string named = "usage: rank 1 (thread 1): no";
  CHECK(told([](Communicator& ranks) {
          if (ranks.rank() > 0) throw UsageError(ranks.rank() == 1 ? "no" : "never");
        }) == std::vector<std::string>{named, named, named});
}

TEST_CASE("ranks: memory stays where something is on its way into it that cannot be ended", "[ranks]") {
  class Left final : public Communicator {
   public:
    explicit Left(bool ended) : ended_(ended) {}
    int rank() const override { return 0; }
    int size() const override { return 1; }
    std::string place(int) const override { return "here"; }
    std::unique_ptr<Transfer> start_exchange(const void*, PartEnds, void*, PartEnds) override { return nullptr; }
    std::unique_ptr<Transfer> start_gather(void*, PartEnds) override { return nullptr; }
    void gather_host(const void*, std::size_t, void*) override {}
    void collect_host(void*, PartEnds) override {}
    bool all_end_with(std::string_view, double) override { return true; }
    [[noreturn]] void abort(int) override { throw Error("no test ends all ranks"); }
    bool give_up() override { return ended_; }

   private:
    bool ended_;
  };
  struct Memory {
    int& freed;
    explicit Memory(int& count) : freed(count) {}
    ~Memory() { ++freed; }
  };
  int freed = 0;
  const auto leave = [&freed](bool ended, bool throws) {
    Left ranks(ended);
    auto memory = std::make_unique<Memory>(freed);
    Memory* const address = memory.get();
    try {
      outlive_transfers(memory, ranks, [throws] {
        if (throws) throw FileError("on purpose");
      });
    } catch (const FileError&) {
    }
    const bool stays = memory == nullptr;
    memory.reset();
    if (stays) delete address;  // not here for good
    return stays;
  };
  CHECK(leave(false, true));
  CHECK_FALSE(leave(true, true));
  CHECK_FALSE(leave(false, false));
  CHECK(freed == 3);
}

TEST_CASE("ranks: those that differ are named", "[ranks]") {
  const auto told = on_ranks(3, [](Communicator& ranks) {
    return thrown_by([&] { ranks.require_same("the seed", ranks.rank() == 2 ? "8" : "7"); });
  });
  for (const std::string& message : told)
    CHECK(message ==
          "usage: ranks: the seed must be the same everywhere, got 7 on rank 0 (thread 0) and 8 on rank 2 (thread 2)");
}

}  // namespace
}  // namespace engram::harness::communicator_test
