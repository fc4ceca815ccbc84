#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// Drops each element with probability `rate` (rounded to 1/65536) and scales the others by 1 / (1 - rate). Returns x
/// itself in inference mode and at rate 0. Draws from the step's next random stream; no mask is stored. Throws Error
/// unless 0 <= rate < 1.
Variable dropout(const Variable& x, double rate);

/// Dropout with one mask for all times: x: [..., time, n], and every stream (the axes before time) draws n decisions,
/// which all its times share. Gal, Ghahramani (2016); at the hidden states of a language model as in AWD-LSTM (2018).
/// Pieces of a step draw anew. Throws ShapeError for fewer than two axes.
Variable variational_dropout(const Variable& x, double rate);

/// Dropout with one decision for every word: row r of x, [ids..., n], is dropped or scaled as a whole, alike wherever
/// its id occurs; ids: i32, from 0 on. On the vectors of words it is what dropping whole rows of the table is, for the
/// input alone where the output shares the table. Gal, Ghahramani (2016). Throws ShapeError or DTypeError; an id below
/// 0 is undefined behaviour.
Variable word_dropout(const Variable& x, const Tensor& ids, double rate);

}  // namespace engram
