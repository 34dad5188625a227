# Every third-party component, in one place. All come from Debian packages: see tools/packages.txt.
include(FeatureSummary)

find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(Threads REQUIRED)

if(SHARDPLAN_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(SHARDPLAN_BENCHMARKS)
  find_package(benchmark QUIET)
endif()
add_feature_info(Tests SHARDPLAN_TESTS "GoogleTest suites under tests/")
add_feature_info(Benchmarks benchmark_FOUND "Google Benchmark programs under tests/bench")
add_feature_info(Fuzzers SHARDPLAN_FUZZERS "libFuzzer targets under tests/fuzz")
