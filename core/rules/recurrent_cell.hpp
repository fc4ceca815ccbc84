#pragma once
/// The cells of recurrent layers: how a hidden state h_t of k numbers follows from earlier ones and from the layer's
/// input, of which everything that does not depend on time (W x_t + b) has been computed before. Formulas are
/// shared by all devices.

#include <cstdint>
#include <string_view>

#include "core/host_device.hpp"
#include "core/names.hpp"
#include "core/rules/pointwise.hpp"

namespace engram {

/// a_t, g_t stand for blocks of k of the layer's inputs; f for tanh; products with matrices [k, k] are written U h; *
/// is element by element. What does not exist (before the start of a sequence) is zero.
enum class RecurrentCell : std::uint8_t {
  /// h_t = f(a_t + U h_{t-1}). Elman (1990).
  rnn,
  /// Pre-activations (a_i, a_f, a_g, a_o) + (U_i, U_f, U_g, U_o) h_{t-1}; i, f, o = sigmoid, g = tanh of them;
  /// c_t = f * c_{t-1} + i * g, h_t = o * tanh(c_t). Hochreiter, Schmidhuber (1997) with the forget gate of Gers,
  /// Schmidhuber, Cummins (2000); no peepholes, no projection.
  lstm,
  /// h_t = f(a_t + sum_{m=1..N} decay^m U_m h_{t-m}). Soltani, Jiang (2016), with fixed weights of the past.
  hornn_fofe,
  /// q_{t,m} = sigmoid(g_{t,m} + R_m h_{t-m}), h_t = f(a_t + sum_m q_{t,m} * (U_m h_{t-m})). The same, with gates.
  hornn_gated,
  /// Pre-activations (a_z, a_f, a_o); z = tanh, f, o = sigmoid of them; c_t = f * c_{t-1} + (1 - f) * z, h_t = o * c_t.
  /// Bradbury et al. (2017), fo-pooling: steps multiply no matrix, so it is no cell of recurrence() but what
  /// quasi_recurrence() computes.
  qrnn
};
constexpr auto names_of(RecurrentCell) {
  return std::to_array<Named<RecurrentCell>>({{RecurrentCell::lstm, "lstm"},
                                              {RecurrentCell::rnn, "rnn"},
                                              {RecurrentCell::hornn_fofe, "hornn_fofe"},
                                              {RecurrentCell::hornn_gated, "hornn_gated"},
                                              {RecurrentCell::qrnn, "qrnn"}});
}

struct RecurrenceOptions {
  RecurrentCell cell = RecurrentCell::lstm;
  int order = 1;       ///< N of the two higher-order cells, at least 1; the others are of order 1 whatever it says
  double decay = 0.6;  ///< of hornn_fofe: in (0, 1]

  constexpr bool higher_order() const {
    return cell == RecurrentCell::hornn_fofe || cell == RecurrentCell::hornn_gated;
  }
  /// How many earlier hidden states a step reads.
  constexpr int history() const { return higher_order() ? order : 1; }
  /// Blocks of k in a row of the inputs: rnn, fofe a; lstm a_i, a_f, a_g, a_o; gated a, g_1, ..., g_N.
  constexpr int input_blocks() const {
    return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::hornn_gated ? 1 + order : 1;
  }
  /// Matrices [k, k] in the weight, one below the other: rnn U; lstm U_i, U_f, U_g, U_o; fofe U_1, ..., U_N; gated
  /// U_1, ..., U_N, R_1, ..., R_N.
  constexpr int weight_blocks() const {
    return cell == RecurrentCell::lstm          ? 4
           : cell == RecurrentCell::hornn_fofe  ? order
           : cell == RecurrentCell::hornn_gated ? 2 * order
                                                : 1;
  }
};

/// Functions of one number. A device may pass its own to the formulas below, over several numbers at a time.
struct NumberMath {
  template <class X>
  ENGRAM_HD static X sigmoid(X x) {
    return Sigmoid::value(x);
  }
  template <class X>
  ENGRAM_HD static X tanh(X x) {
    return Tanh::value(x);
  }
};

/// The gradient of x where y = tanh(x) has the gradient dy.
template <class X>
ENGRAM_HD X through_tanh(const X& dy, const X& y) {
  return dy - dy * (y * y);
}
/// The gradient of x where y = sigmoid(x) has the gradient dy.
template <class X>
ENGRAM_HD X through_sigmoid(const X& dy, const X& y) {
  return dy * (y - y * y);
}

/// One unit (or several, in vectors X) of an LSTM: pre-activations in, gates after their activations out; from c_{t-1}
/// to c_t. Returns h_t.
template <class Math, class X>
ENGRAM_HD X lstm_forward(X& i, X& f, X& g, X& o, X& cell) {
  i = Math::sigmoid(i);
  f = Math::sigmoid(f);
  g = Math::tanh(g);
  o = Math::sigmoid(o);
  cell = f * cell + i * g;
  return o * Math::tanh(cell);
}

/// Back: gates in, gradients of the pre-activations out. dcell: what reached c_t through c_{t+1} in, what reaches
/// c_{t-1} out.
template <class Math, class X>
ENGRAM_HD void lstm_backward(X& i, X& f, X& g, X& o, const X& cell, const X& previous_cell, const X& dhidden,
                             X& dcell) {
  const X squashed = Math::tanh(cell);
  const X through = dcell + through_tanh(X(dhidden * o), squashed);
  dcell = through * f;
  const X di = through_sigmoid(X(through * g), i);
  f = through_sigmoid(X(through * previous_cell), f);
  g = through_tanh(X(through * i), g);
  o = through_sigmoid(X(dhidden * squashed), o);
  i = di;
}

/// One unit (or several, in vectors X) of fo-pooling: pre-activations in, gates after their activations out; from
/// c_{t-1} to c_t. Returns h_t.
template <class Math, class X>
ENGRAM_HD X qrnn_forward(X& z, X& f, X& o, X& cell) {
  z = Math::tanh(z);
  f = Math::sigmoid(f);
  o = Math::sigmoid(o);
  cell = z + f * (cell - z);
  return o * cell;
}

/// Back, as lstm_backward().
template <class X>
ENGRAM_HD void qrnn_backward(X& z, X& f, X& o, const X& cell, const X& previous_cell, const X& dhidden, X& dcell) {
  const X through = dcell + dhidden * o;
  dcell = through * f;
  const X dz = through_tanh(X(through - dcell), z);
  f = through_sigmoid(X(through * (previous_cell - z)), f);
  o = through_sigmoid(X(dhidden * cell), o);
  z = dz;
}

}  // namespace engram
