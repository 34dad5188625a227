// The module runs where glibc is older than here: from 2.28 on, which manylinux_2_28 promises. A
// function that a later glibc gave a new version is bound to its old one, which every glibc still
// has; tools/make_wheel.sh has the result checked. Compiled for the module only: the program is
// linked statically.
#include <pthread.h>
#include <sys/stat.h>

#include <cmath>

// The old versions, by names of ours. Threads were in libpthread then.
asm(".symver old_exp, exp@GLIBC_2.2.5");
asm(".symver old_log, log@GLIBC_2.2.5");
asm(".symver old_log2, log2@GLIBC_2.2.5");
asm(".symver old_pow, pow@GLIBC_2.2.5");
asm(".symver old_stat, __xstat@GLIBC_2.2.5");
asm(".symver old_lstat, __lxstat@GLIBC_2.2.5");
asm(".symver old_fstat, __fxstat@GLIBC_2.2.5");
asm(".symver old_pthread_create, pthread_create@GLIBC_2.2.5");
asm(".symver old_pthread_join, pthread_join@GLIBC_2.2.5");
asm(".symver old_pthread_once, pthread_once@GLIBC_2.2.5");
asm(".symver old_pthread_attr_setaffinity_np, pthread_attr_setaffinity_np@GLIBC_2.3.4");

extern "C" {

double old_exp(double);
double old_log(double);
double old_log2(double);
double old_pow(double, double);
int old_stat(int layout, const char* path, struct stat* result);
int old_lstat(int layout, const char* path, struct stat* result);
int old_fstat(int layout, int file, struct stat* result);
int old_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int old_pthread_join(pthread_t, void**);
int old_pthread_once(pthread_once_t*, void (*)());
int old_pthread_attr_setaffinity_np(pthread_attr_t*, size_t, const cpu_set_t*);

double exp(double x) {
  return old_exp(x);
}
double log(double x) {
  return old_log(x);
}
double log2(double x) {
  return old_log2(x);
}
double pow(double x, double y) {
  return old_pow(x, y);
}

/// The layout of `struct stat` that x86-64 has had from the start (bits/stat.h, _STAT_VER_LINUX).
constexpr int kLayout = 1;
int stat(const char* path, struct stat* result) {
  return old_stat(kLayout, path, result);
}
int lstat(const char* path, struct stat* result) {
  return old_lstat(kLayout, path, result);
}
/// What libstdc++ calls; the same as fstat where long has 64 bits.
int fstat64(int file, struct stat64* result) {
  return old_fstat(kLayout, file, reinterpret_cast<struct stat*>(result));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  return old_pthread_create(thread, attributes, run, argument);
}
int pthread_join(pthread_t thread, void** result) {
  return old_pthread_join(thread, result);
}
int pthread_once(pthread_once_t* once, void (*run)()) {
  return old_pthread_once(once, run);
}
int pthread_attr_setaffinity_np(pthread_attr_t* attributes, size_t size, const cpu_set_t* set) {
  return old_pthread_attr_setaffinity_np(attributes, size, set);
}

/// glibc 2.32 says here that there is one thread, and std::shared_ptr counts without atomics then.
/// Zero: there may be more.
extern char __libc_single_threaded;
char __libc_single_threaded = 0;
}
