// A machine file, as `shardplan probe` writes it, and the object that calibrations and records
// hold.
#pragma once

#include <string>

#include "json/reader.h"
#include "timing/measured_host.h"

namespace shardplan {

/// Throws InputError.
MeasuredHost read_measured_host(ObjectReader reader);
MeasuredHost load_measured_host(const std::string& path);

/// As they read it.
Json measured_host_json(const MeasuredHost& host);

}  // namespace shardplan
