#pragma once
/// Gradients of tables' rows over the ranks: every rank gets what all have read.

#include "autograd/parameter_store.hpp"
#include "core/communicator.hpp"

namespace engram {

/// The gradient of every table becomes what all ranks have of it, those of rank 0 first. All ranks must have as many
/// parts of a table, with equal shapes. Takes memory of the step. One rank: nothing happens.
/// `costs`: as gather_in_step() has it.
void gather_row_gradients(Step& step, ParameterStore& store, Communicator& ranks, ExchangeCosts& costs);

}  // namespace engram
