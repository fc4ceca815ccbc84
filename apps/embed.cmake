# Writes a source with the contents of files, which the functions of a header return:
#   cmake -DOUT=FILE -DHEADER=apps/ROOM/ASSETS.hpp "-DNAMES=FUNCTION;..." "-DFUNCTION=FILE;FILE" ... -P embed.cmake
# Several files are put one behind the other; a function without files returns nothing. Arrays of bytes, because compilers
# bound the length of texts.
function(embed name)
  set(bytes "")
  foreach(file ${ARGN})
    file(READ ${file} hex HEX)
    string(APPEND bytes "${hex}0a")
  endforeach()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  if(bytes STREQUAL "")
    set(text "std::string_view ${name}() { return {}; }\n")
  else()
    set(text "constexpr unsigned char k_${name}[] = {${bytes}};\nstd::string_view ${name}() { return view(k_${name}); }\n")
  endif()
  set(all "${all}${text}" PARENT_SCOPE)
endfunction()

set(all "")
foreach(name ${NAMES})
  embed(${name} ${${name}})
endforeach()
file(WRITE ${OUT}.new "// Made by embed.cmake.
#include \"${HEADER}\"

#include <cstddef>

namespace engram {
namespace {

template <std::size_t n>
std::string_view view(const unsigned char (&bytes)[n]) {
  return {reinterpret_cast<const char*>(bytes), n};
}

}  // namespace

${all}
}  // namespace engram
")
file(RENAME ${OUT}.new ${OUT})
