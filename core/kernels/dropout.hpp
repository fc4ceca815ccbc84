#pragma once
/// Inverted dropout. Srivastava et al., JMLR 15 (2014), with the kept values scaled up during training.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[i] (set or add) x[i] * multiplier when element i is kept, else 0 (core/random_stream.hpp). Its own
/// derivative: the backward pass calls it on the gradient with the same stream, so no mask is stored.
inline constinit Kernel<void(const Tensor& x, RandomStream random, DropoutRule rule, const Target& y)> dropout{
    "dropout"};

/// Dropout with one mask per stream and feature, constant over time: x, y: [B, M, n], and element (b, m, i) is kept
/// when element b n + i of the random stream is. "Variational" dropout: Gal, Ghahramani (2016); its own derivative too.
inline constinit Kernel<void(const Tensor& x, RandomStream random, DropoutRule rule, const Target& y)>
    variational_dropout{"variational_dropout"};

/// Dropout with one decision per id: row r of x, [R, n], is kept when element id[r] of the random stream is; id: [R]
/// i32, at least 0. Its own derivative too.
inline constinit Kernel<void(const Tensor& x, const Tensor& id, RandomStream random, DropoutRule rule, const Target& y)>
    word_dropout{"word_dropout"};

}  // namespace engram::kernels
