#pragma once
/// All of Engram that other programs may count on; docs/guide/library.md. What this header shows, with what it
/// includes, is what libengram.so exports: everything else is hidden there. Include it and no other one.

#if __cplusplus < 202002L
#error "Engram's headers are C++20: compile with -std=c++20 or a later one"
#endif

// Also in a program that hides its own names: slots of kernels and types of exceptions must be those of the library.
#pragma GCC visibility push(default)

// A trained run: opened, asked for losses, text and tensors.
#include "apps/library/run.hpp"

// Devices, memory and tensors; messages; what an operation of one's own is made of.
#include "core/arena.hpp"
#include "core/backend.hpp"
#include "core/error.hpp"
#include "core/host_copy.hpp"
#include "core/kernel.hpp"
#include "core/log.hpp"
#include "core/step.hpp"
#include "core/target.hpp"
#include "core/tensor.hpp"

// The tape, its functions, and parameters.
#include "autograd/functions.hpp"
#include "autograd/gradcheck.hpp"
#include "autograd/node.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "autograd/variable.hpp"

// Modules, layers, optimisers and checkpoints.
#include "nn/checkpoint.hpp"
#include "nn/init.hpp"
#include "nn/layers/embedding.hpp"
#include "nn/layers/feed_forward.hpp"
#include "nn/layers/layer_norm.hpp"
#include "nn/layers/linear.hpp"
#include "nn/layers/product_key_memory.hpp"
#include "nn/layers/rms_norm.hpp"
#include "nn/layers/self_attention.hpp"
#include "nn/module.hpp"
#include "nn/optim/make_optimizer.hpp"
#include "nn/optim/named_tensors.hpp"
#include "nn/optim/schedule.hpp"
#include "nn/past/hidden_cache.hpp"
#include "nn/visitor.hpp"

#pragma GCC visibility pop
