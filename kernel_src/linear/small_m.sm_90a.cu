// linear/small_m for sm_90a: out = bf16(quantise_1x128(x) * w^T with 128x128 block scales), few tokens, one
// launch.
//
// A cluster of kSplitK blocks computes all tokens by 16 * kTilesN columns; its blocks split K. A warp of a
// block asks for weights, by bulk copies, as many stages ahead as shared memory holds (kEarlySteps at once,
// the others when the first activations have come). While they stream, the other warps quantise the block's
// part of the activations into shared memory. Then these take k blocks and tiles, kWarpTiles at a time.
// Weights are the rows of the matrix product and tokens its columns, both widened from e4m3 to f16, which
// holds them exactly: the compiler makes just that of an e4m3 product of warp size, and the one of warpgroup
// size is reported to sum in fewer bits than float32. At the end the sums of the warps are added up, then
// those of the blocks, each block getting the others' sums of the columns that it owns.

#include "constants.h"
#include "device/layout.h"
#include "device/quantise.h"
#include "device/sm_90a/bulk_copy.h"
#include "device/sm_90a/cluster.h"
#include "device/sm_90a/convert.h"
#include "device/sm_90a/fragment.h"
#include "device/sm_90a/matrix.h"
#include "device/sm_90a/memory.h"
#include "device/sm_90a/quantise.h"
#include "device/types.h"

namespace kiln {
namespace {

using namespace kiln::device;
using namespace kiln::constants;

constexpr int kTileColumns = PreshuffledWeights::kTileRows;
constexpr int kUnitBytes = kTileColumns * kQuantiserGroup;  // a k block of a tile: contiguous
constexpr int kScaleColumns = 128;                          // columns of N that share a weight scale
constexpr int kBlocks = kK / kQuantiserGroup;
constexpr int kOwnBlocks = kBlocks / kSplitK;  // k blocks of a thread block
constexpr int kTokenGroups = (kMaxM + MmaFragment::kColumns - 1) / MmaFragment::kColumns;
constexpr int kTiles = kN / kTileColumns;
constexpr int kWarpsN = (kTilesN + kWarpTiles - 1) / kWarpTiles;
constexpr int kWorkers = kWarpsN * kWarpsK;        // warps that compute; one more copies
constexpr int kStageBlocks = kOwnBlocks / kSteps;  // k blocks of a stage
constexpr int kThreads = (kWorkers + 1) * kWarpLanes;
// The threads that add up the warps' sums. The copying warp helps, but not where it has waited for stages and
// no cluster follows: racecheck takes its reads, behind the block's barrier, for unordered.
constexpr int kAdders = kSplitK == 1 && kStages < kSteps ? kWorkers * kWarpLanes : kThreads;
// The last cluster may have fewer tiles than the others, the last warp than its neighbours.
constexpr bool kWhole = kTiles % kTilesN == 0 && kTilesN % kWarpTiles == 0;

static_assert(kN % kTileColumns == 0 && kK % kQuantiserGroup == 0, "the problem consists of 16 x 128 tiles");
static_assert(kMaxM >= 1 && kMaxM <= 64, "small M");
static_assert(kSplitK == 1 || kSplitK == 2 || kSplitK == 4 || kSplitK == 8, "portable cluster sizes");
static_assert(kTilesN >= 1 && kTilesN <= kWarpLanes, "a lane copies each tile");
static_assert(kWarpTiles >= 1 && kWarpTiles <= kTilesN, "a warp works on tiles of its block");
static_assert(kWarpsK >= 1 && kBlocks % (kSplitK * kWarpsK) == 0, "split_k * warps_k divides the k blocks");
static_assert(kWorkers <= 16, "a warp more than that finds no registers");
static_assert(kSteps >= 1 && kOwnBlocks % kSteps == 0, "steps divide the k blocks");
static_assert(kEarlySteps >= 1 && kEarlySteps <= kStages, "early steps find a stage");
static_assert(kStages >= 1 && kStages <= kSteps, "stages are used");
// A phase of a barrier is told from the one before it alone: a warp must not leave a use of a stage out.
static_assert(kStages == kSteps || kStageBlocks % kWarpsK == 0,
              "where stages are used again, every warp works on every step");

// Sums leave a warp in halves of a tile, eight columns by eight tokens, as the lanes of the product hold
// them: the even tokens' words before those of the odd ones. A quad is four columns of a token.
constexpr int kHalves = 2 * kTilesN;
constexpr int kHalfColumns = kTileColumns / 2;
constexpr int kHalfBytes = kHalfColumns * MmaFragment::kColumns * sizeof(f32);
constexpr int kHalfQuads = kHalfBytes / 16;
// Each block of the cluster owns some halves: it gets the others' sums of them, and writes them out.
constexpr int kOwnHalves = (kHalves + kSplitK - 1) / kSplitK;

// Shared memory, in this order. The sums of the warps take the place of the weights once these are used.
constexpr int kStageTileBytes = kStageBlocks * kUnitBytes;  // contiguous in memory: one copy
constexpr int kStageBytes = kTilesN * kStageTileBytes;
constexpr int kSumsBytes = kHalves * kTokenGroups * kHalfBytes;  // of the warps that share their k blocks
constexpr int kTokensAt =
    kStages * kStageBytes > kWarpsK* kSumsBytes ? kStages* kStageBytes : kWarpsK* kSumsBytes;
constexpr int kTokenGroupBytes = QuantisedTokens::kBytes;
constexpr int kInboxAt = kTokensAt + kTokenGroups * kOwnBlocks * kTokenGroupBytes;
constexpr int kInboxBytes = kOwnHalves * kTokenGroups * kHalfBytes;  // from one block
constexpr int kTokenScalesAt = kInboxAt + (kSplitK == 1 ? 0 : kSplitK * kInboxBytes);
constexpr int kTokenScales = kTokenGroups * kOwnBlocks * MmaFragment::kColumns;
constexpr int kWeightScalesAt = kTokenScalesAt + kTokenScales * 4;
constexpr int kBarriersAt = (kWeightScalesAt + kTilesN * kOwnBlocks * 4 + 7) / 8 * 8;
constexpr int kBarriers = 2 * kStages + 1;
static_assert(kBarriersAt + 8 * kBarriers <= 227 * 1024, "what a block may have");

struct SharedMemory {
    u32 base;

    KILN_DEVICE u32 weights(u32 stage, u32 tile) const {
        return base + stage * kStageBytes + tile * kStageTileBytes;
    }
    KILN_DEVICE u32 tokens(u32 group, u32 block) const {
        return base + kTokensAt + (group * kOwnBlocks + block) * kTokenGroupBytes;
    }
    KILN_DEVICE u32 sums(u32 warp_k, u32 half, u32 group) const {
        return base + warp_k * kSumsBytes + (half * kTokenGroups + group) * kHalfBytes;
    }
    KILN_DEVICE u32 inbox(u32 sender, u32 half, u32 group) const {
        return base + kInboxAt + sender * kInboxBytes + (half * kTokenGroups + group) * kHalfBytes;
    }
    KILN_DEVICE ArrivalBarrier full(u32 stage) const {
        return ArrivalBarrier(base + kBarriersAt + 8 * stage);
    }
    KILN_DEVICE ArrivalBarrier empty(u32 stage) const {
        return ArrivalBarrier(base + kBarriersAt + 8 * (kStages + stage));
    }
    KILN_DEVICE ArrivalBarrier delivered() const {
        return ArrivalBarrier(base + kBarriersAt + 8 * 2 * kStages);
    }
};

// Asks for weights, a step at a time. Lanes take a tile each, from the wait for room to the announcement of
// its bytes; that one of them announces all would do too, but racecheck does not follow it (tests/gpu).
class WeightCopier {
  public:
    KILN_DEVICE WeightCopier(const SharedMemory& shared, const u8* weights, u32 tiles, u32 lane)
        : shared_(shared),
          source_(weights + PreshuffledWeights::tile_offset(lane, kK)),
          tiles_(tiles),
          lane_(lane) {}

    KILN_DEVICE void copy(u32 step) const {
        const u32 stage = step % kStages;
        if (lane_ < tiles_) {
            shared_.full(stage).arrive_and_expect(kStageTileBytes);
            copy_bulk(shared_.weights(stage, lane_), source_ + step * kStageTileBytes, kStageTileBytes,
                      shared_.full(stage), policy_);
        }
    }

  private:
    SharedMemory shared_;
    const u8* source_;
    u32 tiles_;
    u32 lane_;
    u64 policy_ = streaming_policy();
};

// What a warp quantises: a k block of eight tokens at a time, some of them with their loads in flight
// together.
struct TokenWork {
    static constexpr u32 kUnits = kTokenGroups * kOwnBlocks;
    static constexpr u32 kRounds = (kUnits + kWorkers - 1) / kWorkers;
    // As evenly as they go, up to what the registers hold.
    static constexpr u32 kBatches = (kRounds + 7) / 8;
    static constexpr u32 kTogether = (kRounds + kBatches - 1) / kBatches;

    TokenRegisters tokens[kTogether];

    KILN_DEVICE void load(const TokenLoader& loader, u32 warp, u32 round) {
#pragma unroll
        for (u32 i = 0; i < kTogether; ++i) {
            const u32 unit = (round + i) * kWorkers + warp;
            if (unit < kUnits) {
                tokens[i] = loader.load(unit % kTokenGroups, unit / kTokenGroups);
            }
        }
    }
    KILN_DEVICE void write(const SharedMemory& shared, u32 warp, u32 round, u32 lane,
                           f32* token_scales) const {
#pragma unroll
        for (u32 i = 0; i < kTogether; ++i) {
            const u32 unit = (round + i) * kWorkers + warp;
            if (unit < kUnits) {
                const u32 group = unit % kTokenGroups;
                const u32 block = unit / kTokenGroups;
                const f32 scale = quantise(tokens[i], shared.tokens(group, block), lane);
                if (lane % 4 == 0) {
                    token_scales[(group * kOwnBlocks + block) * MmaFragment::kColumns + lane / 4] = scale;
                }
            }
        }
    }
};

// The scales of the block's weights, a few for each thread that computes.
struct WeightScaleWork {
    static constexpr u32 kCount = kTilesN * kOwnBlocks;
    static constexpr u32 kEach = (kCount + kWorkers * kWarpLanes - 1) / (kWorkers * kWarpLanes);

    f32 scales[kEach] = {};

    KILN_DEVICE void load(const f32* w_scale, u32 first_tile, u32 tiles, u32 first_block) {
#pragma unroll
        for (u32 i = 0; i < kEach; ++i) {
            const u32 index = i * (kWorkers * kWarpLanes) + threadIdx.x;
            // A tile lies in one row of scales, since 16 divides 128.
            const u32 row = (first_tile + index / kOwnBlocks) * kTileColumns / kScaleColumns;
            if (index < tiles * kOwnBlocks) {
                scales[i] = load_constant_4(w_scale + row * kBlocks + first_block + index % kOwnBlocks);
            }
        }
    }
    KILN_DEVICE void write(f32* weight_scales) const {
#pragma unroll
        for (u32 i = 0; i < kEach; ++i) {
            const u32 index = i * (kWorkers * kWarpLanes) + threadIdx.x;
            if (index < kCount) {
                weight_scales[index] = scales[i];
            }
        }
    }
};

// sums += a k block of a warp's tiles, scaled.
KILN_DEVICE void multiply(MmaSums (&sums)[kWarpTiles][kTokenGroups], const SharedMemory& shared, u32 block,
                          u32 first_tile, u32 tiles, u32 lane, const f32* token_scales,
                          const f32* weight_scales) {
    const u32 block_weights =
        shared.weights(block / kStageBlocks % kStages, 0) + block % kStageBlocks * kUnitBytes + lane * 16;
    // A tile that is missing is taken for the last one; nobody looks at its sums.
    const auto known = [&](u32 tile) { return kWhole || tile < tiles ? tile : tiles - 1; };
    constexpr u32 kPieces = QuantisedTokens::kPieces;
    // Products that add to the same sums wait for each other: a warp needs a few chains of them side by side.
    constexpr u32 kTogether = kTokenGroups == 1 ? kWarpTiles : 1;
    constexpr u32 kChains = kTokenGroups * kTogether == 1 ? 2 : 1;
    F16Quad tokens[kTokenGroups][kPieces];
#pragma unroll
    for (u32 group = 0; group < kTokenGroups; ++group) {
        load_tokens(shared.tokens(group, block), lane, tokens[group]);
    }
#pragma unroll
    for (u32 tile = 0; tile < kWarpTiles; tile += kTogether) {
        if (!kWhole && first_tile + tile >= tiles) {
            break;
        }
        MatrixRows weights[kTogether][kPieces / 2];
#pragma unroll
        for (u32 i = 0; i < kTogether; ++i) {
#pragma unroll
            for (u32 piece = 0; piece < kPieces; piece += 2) {
                weights[i][piece / 2] =
                    load_matrices(block_weights + known(first_tile + tile + i) * kStageTileBytes +
                                  piece * (kTileColumns * 16));
            }
        }
        MmaSums products[kTogether][kTokenGroups][kChains] = {};
#pragma unroll
        for (u32 piece = 0; piece < kPieces; ++piece) {
#pragma unroll
            for (u32 i = 0; i < kTogether; ++i) {
                const F16Quad upper = unpack_e4m3(weights[i][piece / 2].word[piece % 2 * 2]);
                const F16Quad lower = unpack_e4m3(weights[i][piece / 2].word[piece % 2 * 2 + 1]);
#pragma unroll
                for (u32 group = 0; group < kTokenGroups; ++group) {
                    mma_16x8x16_f16(products[i][group][piece % kChains], upper, lower, tokens[group][piece]);
                }
            }
        }
#pragma unroll
        for (u32 i = 0; i < kTogether; ++i) {
            const f32 weight_scale = weight_scales[known(first_tile + tile + i) * kOwnBlocks + block];
#pragma unroll
            for (u32 group = 0; group < kTokenGroups; ++group) {
                const f32* const token_scale =
                    token_scales + (group * kOwnBlocks + block) * MmaFragment::kColumns;
                const f32 even = token_scale[MmaFragment::column(lane, 0)] * weight_scale;
                const f32 odd = token_scale[MmaFragment::column(lane, 1)] * weight_scale;
#pragma unroll
                for (u32 j = 0; j < MmaFragment::kSums; ++j) {
                    f32 product = products[i][group][0].value[j];
                    if constexpr (kChains == 2) {
                        product += products[i][group][1].value[j];
                    }
                    f32& sum = sums[tile + i][group].value[j];
                    sum = fused_multiply_add(product, j % 2 == 0 ? even : odd, sum);
                }
            }
        }
    }
}

KILN_DEVICE void put_sums(const SharedMemory& shared, u32 warp_k, u32 first_tile, u32 tiles,
                          const MmaSums (&sums)[kWarpTiles][kTokenGroups], u32 lane) {
    const u32 word = MmaFragment::column(lane, 0) / 2 * kHalfColumns + MmaFragment::outer(lane);
#pragma unroll
    for (u32 tile = 0; tile < kWarpTiles; ++tile) {
        if (!kWhole && first_tile + tile >= tiles) {
            break;
        }
#pragma unroll
        for (u32 group = 0; group < kTokenGroups; ++group) {
#pragma unroll
            for (u32 i = 0; i < MmaFragment::kSums; ++i) {
                store_shared_4(shared.sums(warp_k, 2 * (first_tile + tile) + i / 2, group) +
                                   i % 2 * (kHalfBytes / 2) + 4 * word,
                               sums[tile][group].value[i]);
            }
        }
    }
}

struct Quad {
    f32 column[4];

    KILN_DEVICE void add(u32 shared_address) {
        const Words4 words = load_shared_16(shared_address);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            column[i] += bits_as<f32>(words.word[i]);
        }
    }
};

}  // namespace
}  // namespace kiln

extern "C" __global__ __cluster_dims__(kiln::constants::kSplitK, 1, 1)
    __launch_bounds__(kiln::kThreads, 1) void KILN_KERNEL_NAME(const kiln::device::bf16_bits* __restrict__ x,
                                                               const kiln::device::u8* __restrict__ w,
                                                               const float* __restrict__ w_scale,
                                                               kiln::device::bf16_bits* __restrict__ out,
                                                               int m, int ldx) {
    using namespace kiln;
    extern __shared__ __align__(128) u8 shared_bytes[];
    const SharedMemory shared{shared_address(shared_bytes)};
    f32* const token_scales = reinterpret_cast<f32*>(shared_bytes + kTokenScalesAt);
    f32* const weight_scales = reinterpret_cast<f32*>(shared_bytes + kWeightScalesAt);

    const u32 warp = threadIdx.x / kWarpLanes;
    const u32 lane = threadIdx.x % kWarpLanes;
    const u32 rank = kSplitK == 1 ? 0 : cluster_rank();
    const u32 first_tile = blockIdx.x / kSplitK * kTilesN;
    const u32 tiles = kWhole || kTiles - first_tile > kTilesN ? kTilesN : kTiles - first_tile;
    const u32 first_block = rank * kOwnBlocks;
    const u8* const weights =
        w + PreshuffledWeights::tile_offset(first_tile, kK) + static_cast<u64>(first_block) * kUnitBytes;

    if (warp == kWorkers) {
        for (u32 stage = lane; stage < kStages; stage += kWarpLanes) {
            shared.full(stage).initialise(tiles);
            if constexpr (kStages < kSteps) {
                shared.empty(stage).initialise(kWarpsN * kStageBlocks * kWarpLanes);
            }
        }
        if (kSplitK > 1 && lane == 0) {
            shared.delivered().initialise(1);
        }
        make_barriers_visible();
        __syncwarp();
        arrive_at_block<1, kThreads>();  // not after the copies: asking for one takes some 60 cycles
        const WeightCopier copier(shared, weights, tiles, lane);
#pragma unroll
        for (u32 step = 0; step < kEarlySteps; ++step) {
            copier.copy(step);
        }
        if constexpr (kSplitK > 1) {
            if (lane == 0) {
                const i32 halves_left = kHalves - static_cast<i32>(rank) * kOwnHalves;
                const i32 own_halves = halves_left < 0            ? 0
                                       : halves_left < kOwnHalves ? halves_left
                                                                  : kOwnHalves;
                shared.delivered().arrive_and_expect(kSplitK * own_halves * kTokenGroups * kHalfBytes);
            }
            __syncwarp();
            cluster_arrive_releasing();
        }
        if constexpr (kEarlySteps < kStages) {
            wait_for_block<2, kThreads>();
        }
#pragma unroll 1
        for (u32 step = kEarlySteps; step < kSteps; ++step) {
            if (step >= kStages) {
                shared.empty(step % kStages).wait((step / kStages - 1) % 2);
            }
            copier.copy(step);
        }
        __syncwarp();  // lanes without a tile may be ahead, and the block's barrier is for whole warps
    } else {
        if constexpr (kSplitK > 1) {
            cluster_arrive();
        }
        const TokenLoader loader(x, static_cast<u32>(m), static_cast<u32>(ldx), first_block, lane);
        TokenWork work;
        WeightScaleWork scales;
        work.load(loader, warp, 0);
        scales.load(w_scale, first_tile, tiles, first_block);
        work.write(shared, warp, 0, lane, token_scales);
        scales.write(weight_scales);
        if constexpr (kEarlySteps < kStages) {
            arrive_at_block<2, kThreads>();
        }
#pragma unroll 1
        for (u32 round = TokenWork::kTogether; round < TokenWork::kRounds; round += TokenWork::kTogether) {
            work.load(loader, warp, round);
            work.write(shared, warp, round, lane, token_scales);
        }
        wait_for_block<1, kThreads>();

        const u32 warp_tile = warp % kWarpsN * kWarpTiles;
        const u32 warp_k = warp / kWarpsN;
        MmaSums sums[kWarpTiles][kTokenGroups] = {};
#pragma unroll 1
        for (u32 block = warp_k; block < kOwnBlocks; block += kWarpsK) {
            const u32 step = block / kStageBlocks;
            shared.full(step % kStages).wait(step / kStages % 2);
            multiply(sums, shared, block, warp_tile, tiles, lane, token_scales, weight_scales);
            if constexpr (kStages < kSteps) {
                shared.empty(step % kStages).arrive();  // every lane for itself, as the copier
            }
        }
        // Where weights were, once every warp is done with them.
        wait_for_block<3, kWorkers * kWarpLanes>();
        put_sums(shared, warp_k, warp_tile, tiles, sums, lane);
    }
    __syncthreads();
    if constexpr (kSplitK > 1) {
        cluster_wait();  // every block has announced what it expects
    }

    // In the order of the warps, then of the blocks: the result does not depend on timing.
    const auto write = [&](u32 half, u32 group, u32 quad, const Quad& total) {
        const u32 token = group * MmaFragment::kColumns + quad / 2 % 4 * 2 + quad / 8;
        const u32 column = first_tile * kTileColumns + half * kHalfColumns + quad % 2 * 4;
        if (token < static_cast<u32>(m) && (kWhole || half / 2 < tiles)) {
            store_8(out + static_cast<u64>(token) * kN + column, pack_bf16(total.column[0], total.column[1]),
                    pack_bf16(total.column[2], total.column[3]));
        }
    };
    for (u32 i = threadIdx.x; i < kHalves * kTokenGroups * kHalfQuads && threadIdx.x < kAdders;
         i += kAdders) {
        const u32 quad = i % kHalfQuads;
        const u32 group = i / kHalfQuads % kTokenGroups;
        const u32 half = i / kHalfQuads / kTokenGroups;
        Quad total{};
#pragma unroll
        for (u32 warp_k = 0; warp_k < kWarpsK; ++warp_k) {
            total.add(shared.sums(warp_k, half, group) + 16 * quad);
        }
        if constexpr (kSplitK == 1) {
            write(half, group, quad, total);
        } else {
            const u32 owner = half / kOwnHalves;
            store_remote_16(cluster_address(shared.inbox(rank, half % kOwnHalves, group) + 16 * quad, owner),
                            total.column, cluster_address(shared.delivered().address(), owner));
        }
    }
    if constexpr (kSplitK > 1) {
        shared.delivered().wait(0);
        for (u32 i = threadIdx.x; i < kOwnHalves * kTokenGroups * kHalfQuads; i += kThreads) {
            const u32 quad = i % kHalfQuads;
            const u32 group = i / kHalfQuads % kTokenGroups;
            const u32 own_half = i / kHalfQuads / kTokenGroups;
            const u32 half = rank * kOwnHalves + own_half;
            if (half < kHalves) {
                Quad total{};
#pragma unroll
                for (u32 sender = 0; sender < kSplitK; ++sender) {
                    total.add(shared.inbox(sender, own_half, group) + 16 * quad);
                }
                write(half, group, quad, total);
            }
        }
    }
}
