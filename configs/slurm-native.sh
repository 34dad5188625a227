#!/usr/bin/env bash
# Runs a job of the native engine on two nodes of eight GPUs, one process a GPU:
#   sbatch configs/slurm-native.sh JOB.json
#SBATCH --job-name=shardplan
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=00:30:00
set -euo pipefail

job="${1:?usage: sbatch configs/slurm-native.sh JOB.json}"
# Rank 0 hands out the NCCL id here.
MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
export MASTER_ADDR MASTER_PORT="${MASTER_PORT:-29500}"

# A rank that fails ends the others by itself; --kill-on-bad-exit covers a node that disappears.
srun --kill-on-bad-exit=1 shardplan-validate "$job" --record "record-$SLURM_JOB_ID.json"
