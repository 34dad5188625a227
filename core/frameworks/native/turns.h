// How long a stage of the native engine's pipeline waits for the others.
#pragma once

#include "frameworks/native/sizes.h"

namespace shardplan {

/// Of what a stage computes in a step: it waits while the first micro-batch comes to it and while
/// the last one's gradients go back, (p − 1) turns of the other stages (PipeDream-Flush, arXiv
/// 2006.09503; chunks make a turn shorter: arXiv 2104.04473). Their turns are taken as long as
/// their FLOPs are many beside this stage's: the last stage has the head, the others have less.
double native_bubble_share(const Native& n);

}  // namespace shardplan
