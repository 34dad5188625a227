// Measures the host that it runs on, with the Python that trains.
#pragma once

#include <string>

#include "json/document.h"

namespace shardplan {

/// What data/probe/host.py prints under this interpreter (a path, or a name that PATH has):
/// shardplan.machine/1. Takes some three seconds, with PyTorch and a GPU ten more. Throws
/// InputError where there is no such interpreter, or where it fails.
Json run_probe(const std::string& python);

}  // namespace shardplan
