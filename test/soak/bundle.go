package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// bundleVersion is that of the format of bundles; a bundle of another one is refused.
const bundleVersion = 1

// header says what a bundle is of.
type header struct {
	Version int     `json:"version"`
	Seed    uint64  `json:"seed"`
	Minutes float64 `json:"minutes"`
	Size    size    `json:"size"`
	Commit  string  `json:"commit"`
	// From is the commit that the fleet was upgraded from.
	From string `json:"from,omitempty"`
	// Versions says that Temporal gave its tasks to one build at a time.
	Versions bool      `json:"versions,omitempty"`
	Began    time.Time `json:"began"`
}

// write is one write to the hub's store, in the order of revisions.
type write struct {
	Revision int64     `json:"revision"`
	At       time.Time `json:"at"`
	// Resource is the plural name of the kind.
	Resource string `json:"resource"`
	// Gone says that the object was deleted; Object is then as it was last.
	Gone   bool            `json:"gone,omitempty"`
	Object json.RawMessage `json:"object"`
}

const (
	headerFile   = "header.json"
	writesFile   = "writes.jsonl.gz"
	stepsFile    = "steps.jsonl"
	findingsFile = "findings.txt"
)

// bundle is a folder that keeps what happened in a soak.
type bundle struct {
	dir    string
	header header

	mu     sync.Mutex
	writes *os.File
	packed *gzip.Writer
	steps  *os.File
}

// newBundle begins a bundle in a folder that does not exist yet.
func newBundle(dir string, h header) (*bundle, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of bundles: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the bundle: %w", err)
	}
	h.Version = bundleVersion
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the bundle's header: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, headerFile), append(text, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("writing the bundle's header: %w", err)
	}
	b := &bundle{dir: dir, header: h}
	if b.writes, err = os.Create(filepath.Join(dir, writesFile)); err != nil {
		return nil, fmt.Errorf("making the bundle: %w", err)
	}
	if b.steps, err = os.Create(filepath.Join(dir, stepsFile)); err != nil {
		return nil, fmt.Errorf("making the bundle: %w", err)
	}
	b.packed = gzip.NewWriter(b.writes)
	return b, nil
}

// addWrite keeps a write to the hub.
func (b *bundle) addWrite(w write) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return json.NewEncoder(b.packed).Encode(w)
}

// addStep keeps a step.
func (b *bundle) addStep(s step) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return json.NewEncoder(b.steps).Encode(s)
}

// seal ends the recording, after which the bundle can be read.
func (b *bundle) seal() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.packed.Close(), b.writes.Close(), b.steps.Close())
}

// openBundle reads the header of a bundle.
func openBundle(dir string) (*bundle, error) {
	text, err := os.ReadFile(filepath.Join(dir, headerFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is no bundle: it has no %s", dir, headerFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	b := &bundle{dir: dir}
	if err := json.Unmarshal(text, &b.header); err != nil {
		return nil, fmt.Errorf("reading %s of the bundle: %w", headerFile, err)
	}
	if b.header.Version != bundleVersion {
		return nil, fmt.Errorf("the bundle %s has version %d, this program reads %d: replay it with the commit that made it, %s", dir,
			b.header.Version, bundleVersion, b.header.Commit)
	}
	return b, nil
}

// eachWrite hands on all writes in their order. A recording that was cut off ends with what can be read of it.
func (b *bundle) eachWrite(take func(write) error) error {
	file, err := os.Open(filepath.Join(b.dir, writesFile))
	if err != nil {
		return fmt.Errorf("reading the writes of the bundle: %w", err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return fmt.Errorf("reading the writes of the bundle: %w", err)
	}
	decoder := json.NewDecoder(unpacked)
	for {
		var w write
		switch err := decoder.Decode(&w); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the writes of the bundle: %w", err)
		}
		if err := take(w); err != nil {
			return err
		}
	}
}
