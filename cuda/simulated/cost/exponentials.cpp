/// What counted_exponentials.hpp puts in the place of the C library's functions.

#include <cmath>

#include "cuda/simulated/cost/access_counter.hpp"

namespace {

void count_exponential() {
  if (engram::simulated::AccessCounter* const counter = engram::simulated::AccessCounter::active())
    counter->exponential();
}

}  // namespace

extern "C" {
float engram_counted_expf(float x);
double engram_counted_exp(double x);
float engram_counted_exp2f(float x);
double engram_counted_exp2(double x);
float engram_counted_tanhf(float x);
double engram_counted_tanh(double x);
}

float engram_counted_expf(float x) { return count_exponential(), std::exp(x); }
double engram_counted_exp(double x) { return count_exponential(), std::exp(x); }
float engram_counted_exp2f(float x) { return count_exponential(), std::exp2(x); }
double engram_counted_exp2(double x) { return count_exponential(), std::exp2(x); }
float engram_counted_tanhf(float x) { return count_exponential(), std::tanh(x); }
double engram_counted_tanh(double x) { return count_exponential(), std::tanh(x); }
