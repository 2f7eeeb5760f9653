/*
 * QEMU's plugin interface: the few functions that are used, which are the same in all versions from
 * 1 on.
 */
#ifndef CASEMATE_QEMU_INTERFACE_H
#define CASEMATE_QEMU_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS = 0, READS_AND_WRITES = 3 };

typedef void (*on_vcpu)(plugin_id, unsigned vcpu);
typedef void (*on_translation)(plugin_id, struct qemu_plugin_tb *);
typedef void (*on_block)(unsigned vcpu, void *);
typedef void (*on_access)(unsigned vcpu, uint32_t info, uint64_t address, void *);
typedef void (*on_syscall)(plugin_id, unsigned vcpu, int64_t number, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
typedef void (*on_syscall_return)(plugin_id, unsigned vcpu, int64_t number, int64_t result);
typedef void (*on_exit_)(plugin_id, void *);

void qemu_plugin_register_vcpu_init_cb(plugin_id, on_vcpu);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, on_translation);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, on_block, int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_access, int, int, void *);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, on_syscall);
void qemu_plugin_register_vcpu_syscall_ret_cb(plugin_id, on_syscall_return);
void qemu_plugin_register_atexit_cb(plugin_id, on_exit_, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
unsigned qemu_plugin_mem_size_shift(uint32_t info);
bool qemu_plugin_mem_is_store(uint32_t info);

#define EXPORT __attribute__((visibility("default")))

#endif
