/// Hidden cases write what others compare with, and filters such as ~[slow] choose them too: they may do so only where
/// they are named (source_tree::put_into_tree).

#include <cstdlib>
#include <string_view>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argc, char** argv) {
  unsetenv("ENGRAM_TESTS_WRITE");
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).find("write") != std::string_view::npos) setenv("ENGRAM_TESTS_WRITE", "1", 1);
  return Catch::Session().run(argc, argv);
}
