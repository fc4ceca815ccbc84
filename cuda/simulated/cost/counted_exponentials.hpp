#pragma once
/// Read before everything else by kernels that are compiled for a cost report: their exponentials are counted
/// (cuda/simulated/cost/exponentials.cpp), whichever function of core/rules takes them.

#pragma redefine_extname expf engram_counted_expf
#pragma redefine_extname exp engram_counted_exp
#pragma redefine_extname exp2f engram_counted_exp2f
#pragma redefine_extname exp2 engram_counted_exp2
#pragma redefine_extname tanhf engram_counted_tanhf
#pragma redefine_extname tanh engram_counted_tanh
