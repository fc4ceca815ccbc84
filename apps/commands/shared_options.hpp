#pragma once
/// Options that many commands have, alike in all of them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/command.hpp"
#include "core/device.hpp"
#include "core/dtype.hpp"
#include "core/names.hpp"
#include "core/product_precision.hpp"
#include "nn/layers/recurrent_options.hpp"

namespace engram {

/// --device, for parse_device().
void add_device_option(Command& command, std::string& device);

/// The names of an enum's table, for Option::suggest().
template <HasNames E>
std::vector<std::string> words_of() {
  std::vector<std::string> words;
  for (const auto& named : names_of(E{})) words.emplace_back(named.name);
  return words;
}

/// --threads, of which 0 means all.
void add_threads_option(Command& command, int& threads, const std::string& help = "threads of the host; 0: all");

/// What --dtype of a command names: f32, f64 or, where it `takes_bf16`, bf16. Throws UsageError naming the command and
/// what it takes for everything else.
DType dtype_option(std::string_view command, std::string_view name, bool takes_bf16 = false);
/// How products of f32 read their operands where --dtype is `name`, for commands that use a model: rounded to bf16
/// where it says bf16 or, on a card, nothing.
ProductPrecision products_option(std::string_view name, DeviceKind device);

/// --carry, for carry_option(); empty where it is not given.
void add_carry_option(Command& command, std::string& carry);

/// What --carry names, if it was given.
std::optional<Carry> carry_option(std::string_view carry);

}  // namespace engram
