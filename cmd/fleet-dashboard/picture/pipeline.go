// Package picture works out what pages draw: runs as pipelines and lines of time, samples as plots, fleets as maps. It is pure: what it
// returns are shapes with their texts, and templates write them.
package picture

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/status"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

const (
	// maxTiles is up to how many clusters a run shows a tile for each; of more, stages that have many show blocks of them.
	maxTiles = 240
	// fewTiles is up to how many clusters a stage shows a tile for each, however many the run has.
	fewTiles = 24
	// blockSize is how many clusters a block has.
	blockSize = 100
)

// Pipeline is a run from its first stage to its last.
type Pipeline struct {
	Stages []Stage
	// None says why there is nothing to draw.
	None string
}

// Stage is a stage of a pipeline: what is before its clusters, the clusters, what watches them and what comes after them.
type Stage struct {
	ID, Title string
	Phase     updaterun.Phase
	updaterun.Counts
	// AtOnce is how many clusters are under way at a time; 0 if that is not known.
	AtOnce int
	// Before, During and After are its gates.
	Before, During, After []Gate
	// Waves are its clusters, if each has a tile; else there are Blocks.
	Waves  [][]Tile
	Blocks []Block
}

// Gate is what a stage waits for, or has waited for.
type Gate struct {
	tree.Node
	ID string
	// Waits says that the run waits for it now.
	Waits bool
	// Ends says how it ends, or who may end it.
	Ends string
	// Path and Label are of the page that ends it, and Refusal is why the user may not.
	Path, Label, Refusal string
	// Measures is the page of what it measures; empty if it measures nothing.
	Measures string
}

// Tile is one cluster.
type Tile struct {
	ID, Name string
	Phase    updaterun.Phase
	// Why is what is to be known of it.
	Why string
}

// Block is clusters of a stage that follow each other.
type Block struct {
	ID          string
	First, Last int
	// Phase is that of the clusters that stand out most.
	Phase updaterun.Phase
	updaterun.Counts
	// Path is the page of its clusters.
	Path string
	// Shares are how much of it is in which state, from left to right in hundredths.
	Shares []Share
}

// Share is a part of a whole in one state.
type Share struct {
	Phase updaterun.Phase
	X, W  int
}

// Ending returns how the user ends the wait of a stage for an approval.
type Ending func(stage string) (path, refusal string)

// PipelineOf draws a run. Gates are as the tree of the run has them; path is the page of the run.
func PipelineOf(run updaterun.State, root tree.Node, path string, approve Ending) Pipeline {
	p := Pipeline{}
	if len(run.Stages) == 0 {
		p.None = "Not planned yet: the picture is drawn once the hub has put the clusters into stages."
		return p
	}
	nodes := slices.DeleteFunc(slices.Clone(root.Children), func(node tree.Node) bool { return node.Kind != status.KindStage })
	for i, of := range run.Stages {
		stage := Stage{ID: fmt.Sprintf("stage%d", i), Title: of.Title(), Phase: of.Phase, Counts: of.Counts}
		if i < len(nodes) {
			stage.Phase = nodes[i].State
			stage.addGates(of, nodes[i], path, approve)
		}
		if atOnce, err := rollout.Concurrency(of.MaxConcurrency, of.Total); err == nil && of.MaxConcurrency != "" {
			stage.AtOnce = atOnce
		}
		if run.Total <= maxTiles || of.Total <= fewTiles {
			stage.addTiles(of.Clusters)
		} else {
			stage.addBlocks(of, path)
		}
		p.Stages = append(p.Stages, stage)
	}
	return p
}

// addGates adds the gates of a stage in the order of its tasks, which is that of the tree.
func (s *Stage) addGates(of updaterun.Stage, node tree.Node, path string, approve Ending) {
	gates := slices.DeleteFunc(slices.Clone(node.Children), func(child tree.Node) bool { return child.Kind != status.KindGate })
	n := 0
	for side, task := range of.Tasks() {
		if n == len(gates) {
			return
		}
		gate := Gate{Node: gates[n], ID: fmt.Sprintf("%sgate%d", s.ID, n), Waits: gates[n].State == updaterun.PhaseWaiting}
		n++
		switch {
		case task.Approvable:
			gate.Ends = "ends when a user approves who may update the status of approval requests"
			if gate.Waits {
				gate.Detail = task.Subject
				if detail := task.Detail(); detail != "" {
					gate.Detail += ": " + detail
				}
				gate.Path, gate.Refusal = approve(of.Name)
				gate.Label = "Approve " + of.Title()
			}
		case task.Timed:
			gate.Ends = "ends by itself"
		default:
			gate.Ends = "ends by what it finds"
		}
		if task.Type == placementv1beta1.StageTaskTypeAnalysis {
			gate.Measures = path + "/analyses"
		}
		switch side {
		case stagetask.Before:
			s.Before = append(s.Before, gate)
		case stagetask.During:
			s.During = append(s.During, gate)
		default:
			s.After = append(s.After, gate)
		}
	}
}

// addTiles adds a tile for each cluster, in waves.
func (s *Stage) addTiles(clusters []updaterun.Cluster) {
	n := 0
	for wave := range slices.Chunk(clusters, max(s.AtOnce, 1)) {
		var tiles []Tile
		for _, cluster := range wave {
			tile := Tile{ID: fmt.Sprintf("%st%d", s.ID, n), Name: cluster.Name, Phase: cluster.Phase}
			if cluster.Phase == updaterun.PhaseFailed || cluster.Phase == updaterun.PhaseSkipped {
				tile.Why = cluster.Why
			}
			tiles = append(tiles, tile)
			n++
		}
		s.Waves = append(s.Waves, tiles)
	}
	if s.AtOnce < 2 && len(s.Waves) > 1 { // one after the other: a wave of one is no wave
		s.Waves = [][]Tile{slices.Concat(s.Waves...)}
	}
}

// order is how much clusters in a state stand out, most first; what is left is the rest of a block.
var order = []updaterun.Phase{updaterun.PhaseFailed, updaterun.PhaseRunning, updaterun.PhaseSkipped, updaterun.PhasePending, updaterun.PhaseSucceeded}

// Legend is which states of clusters pictures tell apart.
var Legend = []updaterun.Phase{updaterun.PhaseSucceeded, updaterun.PhaseRunning, updaterun.PhaseFailed, updaterun.PhaseSkipped, updaterun.PhasePending}

// shown is in which order the states of a block are drawn.
var shown = []updaterun.Phase{updaterun.PhaseSucceeded, updaterun.PhaseSkipped, updaterun.PhaseFailed, updaterun.PhaseRunning}

// addBlocks adds blocks of clusters in the order of the run.
func (s *Stage) addBlocks(of updaterun.Stage, path string) {
	n := 0
	for chunk := range slices.Chunk(of.Clusters, blockSize) {
		block := Block{ID: fmt.Sprintf("%sb%d", s.ID, n), First: n*blockSize + 1, Last: n*blockSize + len(chunk)}
		block.Path = path + "/clusters?" + url.Values{"stage": {of.Title()}, "page": {fmt.Sprint(n*blockSize/ClustersShown + 1)}}.Encode()
		in := map[updaterun.Phase]int{}
		for i := range chunk {
			block.Count(chunk[i].Phase)
			in[chunk[i].Phase]++
		}
		for _, phase := range order {
			if in[phase] > 0 {
				block.Phase = phase
				break
			}
		}
		x := 0
		for _, phase := range shown {
			if in[phase] == 0 {
				continue
			}
			w := max(1, in[phase]*100/len(chunk))
			block.Shares = append(block.Shares, Share{phase, x, w})
			x += w
		}
		s.Blocks = append(s.Blocks, block)
		n++
	}
}

// ClustersShown are on a page of the clusters of a run; a whole number of blocks.
const ClustersShown = 2 * blockSize
