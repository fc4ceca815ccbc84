#include "core/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "core/backend.hpp"
#include "core/stopwatch.hpp"

namespace engram {

std::string host_name() {
  std::array<char, 256> host{};
  return ::gethostname(host.data(), host.size() - 1) == 0 ? host.data() : "?";
}

std::string Communicator::name(int rank) const { return text("rank ", rank, " (", place(rank), ")"); }

std::vector<std::string> Communicator::gather_texts(std::string_view own) {
  const auto count = static_cast<std::size_t>(size());
  const std::uint64_t length = own.size();
  std::vector<std::uint64_t> lengths(count);
  gather_host(&length, sizeof(length), lengths.data());
  const std::uint64_t longest = std::max<std::uint64_t>(1, *std::ranges::max_element(lengths));
  std::string padded(own);
  padded.resize(longest);
  std::string all(count * longest, '\0');
  gather_host(padded.data(), longest, all.data());
  std::vector<std::string> texts;
  for (std::size_t q = 0; q < count; ++q) texts.push_back(all.substr(q * longest, lengths[q]));
  return texts;
}

bool Communicator::any(bool own) {
  if (alone()) return own;
  const std::uint8_t mine = own ? 1 : 0;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(size()));
  gather_host(&mine, sizeof(mine), all.data());
  return std::ranges::find(all, 1) != all.end();
}

void Communicator::require_same(std::string_view what, std::string_view own, std::string_view advice,
                                const Difference& difference) {
  if (alone()) return;
  const std::vector<std::string> all = gather_texts(own);
  for (std::size_t q = 1; q < all.size(); ++q) {
    if (all[q] == all[0]) continue;
    const std::string first = name(0), other = name(static_cast<int>(q));
    throw UsageError(text("ranks: ", what, " must be the same everywhere, got",
                          difference ? difference(all[0], all[q], first, other)
                                     : text(" ", all[0], " on ", first, " and ", all[q], " on ", other),
                          advice.empty() ? "" : "\n  ", advice));
  }
}

void Communicator::follow(Backend& backend) {
  if (backend.works_behind()) backend.synchronize();
}

void Communicator::in_step(Backend& backend, std::function<void()> calls) {
  backend.between([this, &backend, calls = std::move(calls)] {
    follow(backend);
    calls();
  });
}

namespace {

constexpr char kWrongUsage = 'u', kNotFinite = 'n', kOther = '+';

char kind_of(const std::exception& error) {
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return kWrongUsage;
  return dynamic_cast<const NotFiniteError*>(&error) != nullptr ? kNotFinite : kOther;
}

}  // namespace

void together(Communicator& ranks, const std::function<void()>& work) {
  if (ranks.alone()) return work();
  std::exception_ptr failed;
  std::string message;  // its kind and what was thrown; empty: nothing was
  try {
    work();
  } catch (const std::exception& error) {
    failed = std::current_exception();
    message = std::string(1, kind_of(error)) + error.what();
  }
  const std::vector<std::string> messages = ranks.gather_texts(message);
  const auto first = std::ranges::find_if_not(messages, &std::string::empty);
  if (first == messages.end()) return;
  const auto number = static_cast<int>(first - messages.begin());
  const bool all_alike = std::ranges::all_of(messages, [&](const std::string& other) { return other == messages[0]; });
  if (all_alike || (number == 0 && ranks.leads())) std::rethrow_exception(failed);
  const std::string one = number == 0 ? first->substr(1) : text(ranks.name(number), ": ", first->substr(1));
  if ((*first)[0] == kWrongUsage) throw UsageError(one);
  if ((*first)[0] == kNotFinite) throw NotFiniteError(one);
  throw RankError(one);
}

void gather_in_step(Communicator& ranks, Backend& backend, std::vector<PartedBuffer> buffers, ExchangeCosts* costs) {
  ranks.in_step(backend, [&ranks, costs, buffers = std::move(buffers)] {
    const Stopwatch watch;
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (const PartedBuffer& buffer : buffers) transfers.push_back(ranks.start_gather(buffer.all, buffer.ends));
    for (const auto& transfer : transfers) transfer->wait();
    if (costs == nullptr) return;
    ExchangeCosts these{.seconds = watch.seconds(), .seconds_waited = watch.seconds()};
    for (const PartedBuffer& buffer : buffers)
      these.bytes_sent += static_cast<std::int64_t>(part_length(buffer.ends, ranks.rank())) * (ranks.size() - 1);
    *costs += these;
  });
}

std::string OneRank::place(int) const { return text(host_name(), ", process ", static_cast<std::int64_t>(::getpid())); }

std::unique_ptr<Transfer> OneRank::start_exchange(const void*, PartEnds, void*, PartEnds) {
  throw Error("ranks: an exchange needs two ranks at least, got 1");
}

std::unique_ptr<Transfer> OneRank::start_gather(void*, PartEnds) {
  throw Error("ranks: a gathering needs two ranks at least, got 1");
}

void OneRank::gather_host(const void* own, std::size_t bytes, void* all) {
  if (bytes > 0) std::memcpy(all, own, bytes);
}

void OneRank::abort(int code) { std::_Exit(code); }

}  // namespace engram
