// libcufile.so, loaded, with its driver open.
#pragma once

#include <memory>
#include <string>

#include "storage/cufile_api.h"

namespace shardplan::validator {

class CufileLibrary {
 public:
  /// `file`: of the library; empty: libcufile.so.0 or libcufile.so as the loader finds them. Who
  /// has it open at the same time shares it: the driver is the process's. Throws StorageError.
  static std::shared_ptr<CufileLibrary> open(const std::string& file);
  ~CufileLibrary();
  CufileLibrary(const CufileLibrary&) = delete;
  CufileLibrary& operator=(const CufileLibrary&) = delete;

  /// "cuFile 1.17, direct (nvidia-fs 2.26)", or in its compatibility mode.
  const std::string& description() const { return description_; }

  cufile::HandleRegister* handle_register = nullptr;
  cufile::HandleDeregister* handle_deregister = nullptr;
  cufile::BufRegister* buf_register = nullptr;
  cufile::BufDeregister* buf_deregister = nullptr;
  cufile::Read* read = nullptr;
  cufile::Write* write = nullptr;

 private:
  explicit CufileLibrary(const std::string& file);
  void load(const std::string& file);
  void find_functions();
  void open_driver();
  std::string describe() const;

  std::string file_, description_;
  void* library_ = nullptr;
  bool opened_ = false;
  cufile::DriverOpen* driver_open_ = nullptr;
  cufile::DriverClose* driver_close_ = nullptr;
  cufile::DriverGetProperties* properties_ = nullptr;
  cufile::GetVersion* version_ = nullptr;
};

/// What a number of CUfileOpError says.
std::string cufile_words(cufile::Status status);

}  // namespace shardplan::validator
