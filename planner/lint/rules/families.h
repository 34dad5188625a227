// The families that registry.cpp lists: one file each.
#pragma once

#include <span>

#include "lint/rule.h"
#include "lint/subject.h"

namespace shardplan {

std::span<const Rule> document_rules();
std::span<const Rule> key_rules();
std::span<const Rule> deprecated_rules();
std::span<const Rule> auto_rules();
std::span<const Rule> batch_rules();
std::span<const Rule> precision_rules();
std::span<const Rule> zero_rules();
std::span<const Rule> optimizer_rules();
std::span<const Rule> parallel_rules();
std::span<const Rule> degree_rules();
std::span<const Rule> unread_rules();
std::span<const Rule> version_rules();
std::span<const Rule> nvme_rules();
std::span<const Rule> trainer_rules();
std::span<const Rule> accelerate_rules();
std::span<const Rule> machine_rules();
std::span<const Rule> memory_rules();
std::span<const Rule> host_rules();
std::span<const Rule> time_rules();

// What the readers of the files do not see by themselves.
void check_auto(const LintSubject& subject, LintFindings& findings);
void check_precision(const LintSubject& subject, LintFindings& findings);
void check_zero(const LintSubject& subject, LintFindings& findings);
void check_degrees(const LintSubject& subject, LintFindings& findings);
void check_versions(const LintSubject& subject, LintFindings& findings);
void check_nvme(const LintSubject& subject, LintFindings& findings);
void check_trainer(const LintSubject& subject, LintFindings& findings);
void check_accelerate(const LintSubject& subject, LintFindings& findings);
void check_machine(const LintSubject& subject, LintFindings& findings);
void check_memory(const LintSubject& subject, LintFindings& findings);
void check_host(const LintSubject& subject, LintFindings& findings);
void check_time(const LintSubject& subject, LintFindings& findings);

}  // namespace shardplan
