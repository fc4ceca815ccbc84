#include "autograd/functions/layer_norm.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::layer_norm_test {
namespace {

constexpr double kEpsilon = 1e-3;

const std::vector<Role> kRoles{Role::activation, Role::vector, Role::vector};

Variable normalise(std::span<const Variable> x) { return layer_norm(x[0], x[1], x[2], kEpsilon); }
Array64 normalised(std::span<const Array64> x) {
  return reference::layer_norm(x[0], {}, x[1], x[2], kEpsilon).normalised;
}

const OpCases cases{
    OpCase{.name = "layer_norm",
           .inputs = {{normal({3, 7}), normal({7}), normal({7})},
                      {normal({5}), normal({5}), normal({5})},
                      {normal({2, 3, 131}), positive({131}), normal({131})},
                      {normal({211, 3}), normal({3}), normal({3})},    // several chunks of rows
                      {normal({35, 16}), normal({16}), normal({16})},  // the same, in packs
                      {normal({0, 3}), normal({3}), normal({3})}},
           .function = normalise,
           .reference = normalised,
           .tolerance = {.bf16 = kRounding},
           .roles = kRoles,
           .errors = {{.inputs = {normal({3, 7}), normal({6}), normal({7})}, .contains = {"gain", "[7]", "[6]"}},
                      {.inputs = {normal({3, 7}), normal({7}), normal({7, 1})}, .contains = {"bias", "[7]", "[7, 1]"}},
                      {.inputs = {normal({3, 7}), normal({7}), index({7}, 2)}, .contains = {"bias", "i32"}},
                      {.inputs = {normal({3, 0}), normal({0}), normal({0})}, .contains = {"[3, 0]"}},
                      {.inputs = {normal({}), normal({1}), normal({1})}, .contains = {"at least one axis", "[]"}}}},
    // The gradient of x is zero, up to rounding.
    OpCase{.name = "layer_norm, one column",
           .inputs = {{normal({2, 1}), normal({1}), normal({1})}},
           .function = normalise,
           .reference = normalised,
           .tolerance = {.bf16 = kRounding, .negligible = 1},
           .roles = kRoles},
    // A mean far from zero: three digits of f32 are lost in the mean itself.
    OpCase{.name = "layer_norm, far from zero",
           .inputs = {{values({2, 3}, {1000.5, 1001, 1002, -0.25, 0.5, 3}), normal({3}), normal({3})}},
           .function = normalise,
           .reference = normalised,
           .tolerance = {.f32 = 1e-3, .bf16 = kRounding},
           .roles = kRoles},
    OpCase{
        .name = "layer_norm, one vector as gain and bias",
        .inputs = {{normal({3, 7}), normal({7})}, {normal({2, 3, 131}), normal({131})}},
        .function = [](std::span<const Variable> x) { return layer_norm(x[0], x[1], x[1], kEpsilon); },
        .reference =
            [](std::span<const Array64> x) { return reference::layer_norm(x[0], {}, x[1], x[1], kEpsilon).normalised; },
        .tolerance = {.bf16 = 2 * kRounding},
        .roles = {Role::activation, Role::vector}},
    OpCase{.name = "layer_norm_residual",
           .inputs = {{normal({3, 7}), normal({3, 7}), normal({7}), normal({7})},
                      {normal({1, 1}), normal({1, 1}), normal({1}), normal({1})},
                      {normal({2, 3, 131}), normal({2, 3, 131}), normal({131}), normal({131})},
                      {normal({211, 3}), normal({211, 3}), normal({3}), normal({3})},
                      {normal({5, 16}), normal({5, 16}), normal({16}), normal({16})}},
           .function =
               [](std::span<const Variable> x) {
                 ResidualNorm y = layer_norm_residual(x[0], x[1], x[2], x[3], kEpsilon);
                 return std::array{std::move(y.sum), std::move(y.normalised)};
               },
           .reference =
               [](std::span<const Array64> x) {
                 reference::LayerNorm y = reference::layer_norm(x[0], x[1], x[2], x[3], kEpsilon);
                 return std::vector<Array64>{y.sum, y.normalised};
               },
           .tolerance = {.bf16 = 2 * kRounding, .bf16_sums = kRounding},
           .roles = {Role::activation, Role::activation, Role::vector, Role::vector},
           .errors = {{.inputs = {normal({3, 7}), normal({7}), normal({7}), normal({7})},
                       .contains = {"residual", "[3, 7]", "[7]"}},
                      {.inputs = {normal({3, 7}), normal({3, 7}), normal({3}), normal({7})},
                       .contains = {"gain", "[7]", "[3]"}}}},
    // x and residual are one value: both shares reach it.
    OpCase{
        .name = "layer_norm_residual of x + x",
        .inputs = {{normal({4, 5}), normal({5}), normal({5})}},
        .function = [](std::span<const Variable> x) { return layer_norm_residual(x[0], x[0], x[1], x[2]).normalised; },
        .reference =
            [](std::span<const Array64> x) { return reference::layer_norm(x[0], x[0], x[1], x[2]).normalised; },
        .tolerance = {.bf16 = 2 * kRounding},
        .roles = kRoles},
    OpCase{.name = "layer_norm_residual, one vector as gain and bias",
           .inputs = {{normal({3, 7}), normal({3, 7}), normal({7})},
                      {normal({2, 3, 131}), normal({2, 3, 131}), normal({131})}},
           .function =
               [](std::span<const Variable> x) {
                 ResidualNorm y = layer_norm_residual(x[0], x[1], x[2], x[2], kEpsilon);
                 return std::array{std::move(y.sum), std::move(y.normalised)};
               },
           .reference =
               [](std::span<const Array64> x) {
                 reference::LayerNorm y = reference::layer_norm(x[0], x[1], x[2], x[2], kEpsilon);
                 return std::vector<Array64>{y.sum, y.normalised};
               },
           .tolerance = {.bf16 = 2 * kRounding, .bf16_sums = kRounding},
           .roles = {Role::activation, Role::activation, Role::vector}},
};

}  // namespace
}  // namespace engram::harness::layer_norm_test
