/// The perplexity of standard input by a trained run:  perplexity RUN < text

#include <cstdio>
#include <engram/engram.hpp>
#include <iostream>
#include <iterator>

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "perplexity: which run? perplexity RUN < text\n");
    return 2;
  }
  try {
    engram::send_log_to([](engram::LogLevel, std::string_view message) {
      std::fprintf(stderr, "perplexity: %.*s\n", static_cast<int>(message.size()), message.data());
    });
    engram::Run run = engram::Run::open(arguments[1]);
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    const engram::Score score = run.score(text);
    std::printf("%lld tokens, perplexity %.4f\n", static_cast<long long>(score.scored), score.perplexity());
  } catch (const engram::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
