# Writes a header whose name INTERFACE_STAMP stands for the contents of the headers that the program and its modules share:
#   cmake -DSOURCE_DIR=... -DOUTPUT=... -P interface_stamp.cmake
file(GLOB_RECURSE headers ${SOURCE_DIR}/core/*.hpp)
set(all "")
foreach(header ${headers})
  file(SHA256 ${header} one)
  string(APPEND all ${one})
endforeach()
string(SHA256 stamp "${all}")
string(SUBSTRING ${stamp} 0 16 stamp)
file(WRITE ${OUTPUT} "#pragma once\n#define INTERFACE_STAMP engram_interface_${stamp}\n")
