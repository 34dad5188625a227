// Degrees of Megatron-LM by their names in jobs and in verl's configurations, which imports read
// and exports write.
#pragma once

#include <array>
#include <utility>

namespace shardplan::importing::verl {

inline constexpr std::array kMegatronDegrees{
    std::pair{"tensor", "tensor_model_parallel_size"},
    std::pair{"pipeline", "pipeline_model_parallel_size"},
    std::pair{"virtual_pipeline", "virtual_pipeline_model_parallel_size"},
    std::pair{"context", "context_parallel_size"},
    std::pair{"expert", "expert_model_parallel_size"},
};

}  // namespace shardplan::importing::verl
