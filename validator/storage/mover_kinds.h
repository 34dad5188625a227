// The movers that there are: each is a row of io_paths().
#pragma once

#include "storage/movers.h"

namespace shardplan::validator {

/// None where the program was built without, or the kernel or a filter of system calls refuses.
std::unique_ptr<Mover> make_uring(const MoverParts& parts, std::string& why);

/// pread and pwrite.
std::unique_ptr<Mover> make_threads(const MoverParts& parts, std::string& why);

/// Between a device's memory and the file. None where libcufile.so is not found, its driver does
/// not open or it does not take the file.
std::unique_ptr<Mover> make_cufile(const MoverParts& parts, std::string& why);

}  // namespace shardplan::validator
