#!/usr/bin/env bash
# Compiles for a fleet under Slurm: every task of the array compiles its part of the tables, and leaves it as a bundle in a folder
# that all nodes see. No task needs a GPU.
#
#     warm=$(sbatch --parsable slurm-warm.sh bundles shapes/*.json)
#     sbatch --dependency="afterok:$warm" --wrap 'kiln bundle merge bundles/part-*-of-4.kiln -o bundles/engine.kiln'
#
# A task that failed is repeated alone: sbatch --array=2 slurm-warm.sh bundles shapes/*.json
#
# Yours to set: the number of tasks, which stands in --array, in `shards` and in the merge; cores, memory and time of one; TARGET.
#SBATCH --job-name=kiln-warm
#SBATCH --array=0-3
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=01:00:00
#SBATCH --output=kiln-warm-%A_%a.log
set -euo pipefail

shards=4 # not SLURM_ARRAY_TASK_COUNT, which is 1 where one task is repeated
if [ $# -lt 2 ]; then
    echo 'usage: sbatch slurm-warm.sh FOLDER TABLE...' >&2
    exit 2
fi
bundles=$1
shift
mkdir -p "$bundles"
part=$bundles/part-$SLURM_ARRAY_TASK_ID-of-$shards.kiln
rm -f "$part" # of the release before

# A store of its own, on the node: the bundle is all that leaves it.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export KILN_CACHE_DIR=$scratch/kiln
kiln bundle create --target "${TARGET:-gfx950}" "$@" --shard "$SLURM_ARRAY_TASK_ID/$shards" \
    --jobs "$SLURM_CPUS_PER_TASK" -o "$part"
