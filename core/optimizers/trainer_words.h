// What transformers calls optimizers, and how each is implemented there.
#pragma once

#include <array>
#include <string_view>

namespace shardplan {

struct OptimizerWord {
  std::string_view word;
  std::string_view name;            ///< in jobs
  std::string_view implementation;  ///< "" for what the optimizer has
  bool written = false;             ///< of those that mean the same the one that exports write
};

/// transformers 5.17, trainer_optimizer.py: plain names pass nothing, and PyTorch then takes
/// foreach. torchao's 8-bit AdamW has bitsandbytes' blocks of 256 with an fp32 scale.
inline constexpr std::array kOptimizerWords{
    OptimizerWord{"adamw_torch", "adamw", "foreach", true},
    OptimizerWord{"adamw_torch_fused", "adamw", "fused", true},
    OptimizerWord{"adamw_hf", "adamw", "foreach"},
    OptimizerWord{"adamw", "adamw", "fused"},
    OptimizerWord{"adafactor", "adafactor", "", true},
    OptimizerWord{"adamw_torch_4bit", "adamw_4bit", "", true},
    OptimizerWord{"adamw_torch_8bit", "adamw_8bit", ""},
    OptimizerWord{"ao_adamw_4bit", "adamw_4bit", ""},
    OptimizerWord{"ao_adamw_8bit", "adamw_8bit", ""},
    OptimizerWord{"adamw_bnb_8bit", "adamw_8bit", "", true},
    OptimizerWord{"adamw_8bit", "adamw_8bit", ""},
    OptimizerWord{"paged_adamw", "paged_adamw", ""},
    OptimizerWord{"paged_adamw_32bit", "paged_adamw", "", true},
    OptimizerWord{"paged_adamw_8bit", "paged_adamw_8bit", "", true},
    OptimizerWord{"sgd", "sgd", "foreach", true},
    OptimizerWord{"adagrad", "adagrad", "foreach", true},
    OptimizerWord{"lion_32bit", "lion", "", true},
    OptimizerWord{"lion_pytorch", "lion", ""},
    OptimizerWord{"muon", "muon", ""},
    OptimizerWord{"soap", "soap", ""},
};

}  // namespace shardplan
