// A libcufile.so without CUDA: reads and writes with pread and pwrite, to memory of the host, and
// counts what it is asked for. FAKE_CUFILE says what goes wrong; FAKE_CUFILE_LOG, a file, is told
// what was left when the driver was closed.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace {

struct Status {
  int cufile, cuda;
};
struct Descriptor {
  int type;
  union {
    int descriptor;
    void* handle;
  };
  const void* operations;
};
struct File {
  int descriptor;
};

std::atomic<long> opened, files, buffers, reads, writes, unregistered;

bool is(const char* fault) {
  const char* said = std::getenv("FAKE_CUFILE");
  return said != nullptr && std::strcmp(said, fault) == 0;
}

template <typename Move>
ssize_t moved(void* file, std::size_t bytes, Move&& move) {
  if (is("fails")) return -5044;
  if (is("errno")) {
    errno = EIO;
    return -1;
  }
  if (is("short")) bytes = std::min<std::size_t>(bytes, 1000);
  return move(static_cast<File*>(file)->descriptor, bytes);
}

}  // namespace

extern "C" {

Status cuFileDriverOpen() {
  if (is("no driver")) return {5001, 0};
  if (is("no cuda")) return {5011, 100};
  ++opened;
  return {0, 0};
}
Status cuFileDriverClose_v2() {
  --opened;
  if (const char* name = std::getenv("FAKE_CUFILE_LOG")) {
    std::FILE* log = std::fopen(name, "w");
    std::fprintf(log, "drivers %ld files %ld buffers %ld unregistered %ld reads %s writes %s\n",
                 opened.load(), files.load(), buffers.load(), unregistered.load(),
                 reads > 0 ? "some" : "none", writes > 0 ? "some" : "none");
    std::fclose(log);
  }
  return {0, 0};
}
Status cuFileDriverGetProperties(unsigned* properties) {
  std::memset(properties, 0, 64);
  if (is("direct")) {
    properties[0] = 2;
    properties[1] = 26;
  }
  return {0, 0};
}
Status cuFileGetVersion(int* version) {
  *version = 1170;
  return {0, 0};
}
Status cuFileHandleRegister(void** file, Descriptor* what) {
  if (is("no file")) return {5008, 0};
  if (what->type != 1) return {5022, 0};
  // As NVIDIA's: "fd opened with unsupported flags".
  if ((fcntl(what->descriptor, F_GETFL) & O_TMPFILE) == O_TMPFILE) return {5019, 0};
  // As NVIDIA's: "open call failed for file /folder/#13860868 (deleted)".
  std::error_code none;
  const auto link = "/proc/self/fd/" + std::to_string(what->descriptor);
  if (!std::filesystem::exists(std::filesystem::read_symlink(link, none), none)) return {5031, 0};
  *file = new File{what->descriptor};
  ++files;
  return {0, 0};
}
void cuFileHandleDeregister(void* file) {
  delete static_cast<File*>(file);
  --files;
}
Status cuFileBufRegister(const void*, std::size_t, int) {
  if (is("no buffers")) return {5016, 0};
  ++buffers;
  return {0, 0};
}
Status cuFileBufDeregister(const void*) {
  --buffers;
  return {0, 0};
}
ssize_t cuFileRead(void* file, void* base, std::size_t bytes, off_t offset, off_t from_base) {
  ++reads;
  if (buffers == 0) ++unregistered;
  return moved(file, bytes, [&](int descriptor, std::size_t most) {
    return pread(descriptor, static_cast<char*>(base) + from_base, most, offset);
  });
}
ssize_t cuFileWrite(void* file, const void* base, std::size_t bytes, off_t offset,
                    off_t from_base) {
  ++writes;
  return moved(file, bytes, [&](int descriptor, std::size_t most) {
    return pwrite(descriptor, static_cast<const char*>(base) + from_base, most, offset);
  });
}
long fake_cufile_left() {
  return opened + files + buffers;
}

}  // extern "C"
