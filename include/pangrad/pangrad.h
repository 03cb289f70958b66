// All of pangrad: tensors, layers, optimisers, files and data sets.
#pragma once

#include <pangrad/cache.h>
#include <pangrad/datasets.h>
#include <pangrad/dtype.h>
#include <pangrad/error.h>
#include <pangrad/fields.h>
#include <pangrad/jit.h>
#include <pangrad/log.h>
#include <pangrad/nn.h>
#include <pangrad/operand.h>
#include <pangrad/optim.h>
#include <pangrad/options.h>
#include <pangrad/safetensors.h>
#include <pangrad/scope.h>
#include <pangrad/shape.h>
#include <pangrad/state.h>
#include <pangrad/tensor.h>
#include <pangrad/version.h>
