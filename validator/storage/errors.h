// What goes wrong with files that states are kept in.
#pragma once

#include "device/errors.h"

namespace shardplan::validator {

/// A folder, a file in it or its disk does not do what is asked for: exit code 5.
struct StorageError : DeviceError {
  using DeviceError::DeviceError;
};

}  // namespace shardplan::validator
