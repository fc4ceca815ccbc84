#pragma once
/// All differentiable functions.

#include "autograd/functions/add.hpp"
#include "autograd/functions/attention.hpp"
#include "autograd/functions/concat.hpp"
#include "autograd/functions/cross_entropy.hpp"
#include "autograd/functions/dropout.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/functions/layer_norm.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/matmul.hpp"
#include "autograd/functions/pointwise.hpp"
#include "autograd/functions/project_past.hpp"
#include "autograd/functions/reshape.hpp"
#include "autograd/functions/scale.hpp"
#include "autograd/functions/slice.hpp"
#include "autograd/functions/softmax.hpp"
#include "autograd/functions/sum.hpp"
