// All of the public headers. They need C++17 and the standard library.
#pragma once

#include "shardplan/error.h"
#include "shardplan/estimate.h"
#include "shardplan/questions.h"
