package auditsink

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// file takes a line of JSON for each record.
type file struct {
	mu  sync.Mutex
	out io.Writer
	// path is that of the file; empty for standard output.
	path string
}

// standardOutput is what a sink names it by.
const standardOutput = "-"

// newFile returns the file of a sink.
func newFile(of *fleetflowv1alpha1.AuditSinkFile, folder string, stdout io.Writer) *file {
	if of.Name == standardOutput {
		return &file{out: stdout}
	}
	path := filepath.Join(folder, of.Name)
	return &file{path: path, out: &lumberjack.Logger{Filename: path, MaxSize: int(of.MaxSizeMiB), MaxBackups: int(of.Keep)}}
}

// Deliver writes lines, and returns when they are on the disk.
func (f *file) Deliver(_ context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range records {
		line, err := json.Marshal(records[i].Spec)
		if err != nil {
			return fmt.Errorf("writing a record as JSON: %w", err)
		}
		if _, err := f.out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("writing a line: %w", err)
		}
	}
	if f.path == "" {
		return nil
	}
	written, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("writing the file to the disk: %w", err)
	}
	defer written.Close()
	if err := written.Sync(); err != nil {
		return fmt.Errorf("writing the file to the disk: %w", err)
	}
	return nil
}

// Close closes the file.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if closer, is := f.out.(*lumberjack.Logger); is {
		return closer.Close()
	}
	return nil
}
