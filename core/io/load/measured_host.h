// What `shardplan probe` writes of a host: in machine files, calibrations and records.
#pragma once

#include <string>

#include "json/reader.h"
#include "timing/measured_host.h"

namespace shardplan {

/// Throws InputError.
MeasuredHost read_measured_host(ObjectReader reader);

/// As they read it.
Json measured_host_json(const MeasuredHost& host);

}  // namespace shardplan
