// Marks what the shared library lets others see.
#pragma once

#define SHARDPLAN_API __attribute__((visibility("default")))
