#pragma once
/// Exceptions and the text of their messages. A message reads `[scope] op: the rule, got the facts`; the
/// scope is added here, from the names that are open when the exception is made (core/scope.hpp).

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace engram {

/// Base of all exceptions of Engram.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
};
class ShapeError : public Error {
 public:
  using Error::Error;
};
class DTypeError : public Error {
 public:
  using Error::Error;
};
/// A code that a device's library returned, with its text.
class DeviceError : public Error {
 public:
  using Error::Error;
};
/// A device has not as much memory left as was asked for.
class OutOfMemory : public DeviceError {
 public:
  using DeviceError::DeviceError;
};
/// No kernel or no backend for the asked device.
class NotAvailable : public Error {
 public:
  using Error::Error;
};
/// A file that cannot be read or written, or whose contents are wrong.
class FileError : public Error {
 public:
  using Error::Error;
};
/// A number that must be finite is not.
class NotFiniteError : public Error {
 public:
  using Error::Error;
};
/// A wrong option, configuration or argument of the command line.
class UsageError : public Error {
 public:
  using Error::Error;
};

void append_text(std::string& out, std::string_view part);
void append_text(std::string& out, std::int64_t part);
void append_text(std::string& out, std::uint64_t part);
void append_text(std::string& out, double part);
void append_text(std::string& out, bool part);

/// The parts written one after the other: text("rows must be ", 3, ", got ", shape). A type of its own has
/// append_text() beside it.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  const auto append = [&out]<class T>(const T& part) {
    if constexpr (std::is_same_v<T, bool>)
      append_text(out, part);
    else if constexpr (std::is_floating_point_v<T>)
      append_text(out, static_cast<double>(part));
    else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      append_text(out, static_cast<std::int64_t>(part));
    else if constexpr (std::is_integral_v<T>)
      append_text(out, static_cast<std::uint64_t>(part));
    else if constexpr (std::is_convertible_v<const T&, std::string_view>)
      append_text(out, std::string_view(part));
    else
      append_text(out, part);
  };
  (append(parts), ...);
  return out;
}

}  // namespace engram
