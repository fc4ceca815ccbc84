#include "apps/commands/shared_options.hpp"

#include "core/error.hpp"

namespace engram {

void add_device_option(Command& command, std::string& device) {
  command.add_option("--device", device, "cpu, cuda, cuda:N (another card) or simulated")
      ->suggest({"cpu", "cuda", "simulated"})
      ->capture_default_str();
}

void add_threads_option(Command& command, int& threads, const std::string& help) {
  constexpr int kMost = 4096;  // as Runtime has it
  command.add_option("--threads", threads, help)->within(0, kMost)->capture_default_str();
}

DType dtype_option(std::string_view command, std::string_view name, bool takes_bf16) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    if (name == name_of(dtype) && (dtype != DType::bf16 || takes_bf16)) return dtype;
  throw UsageError(
      text(command, ": --dtype must be ", takes_bf16 ? "f32, bf16 or f64" : "f32 or f64", ", got '", name, "'"));
}

ProductPrecision products_option(std::string_view name, DeviceKind device) {
  const bool rounds = name.empty() ? device == DeviceKind::cuda : name == name_of(DType::bf16);
  return rounds ? ProductPrecision::bf16 : ProductPrecision::f32;
}

void add_carry_option(Command& command, std::string& carry) {
  command
      .add_option("--carry", carry,
                  "recurrent models: what readouts see of earlier blocks of a text, detached (all that their window "
                  "reaches) or none, as the paper trained [detached]")
      ->one_of({"detached", "none"});
}

std::optional<Carry> carry_option(std::string_view carry) { return find_named<Carry>(carry); }

}  // namespace engram
