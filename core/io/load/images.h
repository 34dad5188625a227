// The images of a job, beside the network that reads them.
#pragma once

#include <string>
#include <vector>

#include "json/reader.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Refuses fields about images of a job whose network reads none. Where what its tower keeps of
/// them is not described, a job that says nothing of images has none, and `work` says so.
void check_images(ObjectReader& job, const Model& model, ImageWork& work);

/// What is assumed of images that the job says nothing of.
std::vector<std::string> assumed_images(ObjectReader& job, const Model& model, const Plan& plan);

/// The sequence length of a job that says none: the images' tokens have room in it.
std::int64_t length_with_images(const Model& model, const Plan& plan, std::int64_t usual);

/// Refuses sequences that are shorter than their images.
void check_image_tokens(ObjectReader& job, const Model& model, const Plan& plan);

}  // namespace shardplan
