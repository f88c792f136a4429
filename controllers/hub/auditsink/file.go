package auditsink

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	// path is that of the file, and full how large it becomes before another is begun; empty for standard output.
	path string
	full int64
	// mayBeTorn is whether the last line may have no end.
	mayBeTorn bool
	// isFolderOther is whether the folder has another file, or another name of one, which may not be on the disk.
	isFolderOther bool
}

const (
	// standardOutput is what a sink names it by.
	standardOutput = "-"
	// defaultSizeMiB is how large a file becomes if its sink says nothing.
	defaultSizeMiB = 100
)

// newFile returns the file of a sink.
func newFile(of *fleetflowv1alpha1.AuditSinkFile, folder string, stdout io.Writer) *file {
	if of.Name == standardOutput {
		return &file{out: stdout}
	}
	path := filepath.Join(folder, of.Name)
	size := int(cmp.Or(of.MaxSizeMiB, defaultSizeMiB))
	return &file{
		path: path, full: int64(size) << 20, mayBeTorn: true,
		out: &lumberjack.Logger{Filename: path, MaxSize: size, MaxBackups: int(of.Keep)},
	}
}

// Deliver writes lines, and returns when they are on the disk.
func (f *file) Deliver(_ context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.endLine(); err != nil {
		return fmt.Errorf("ending the last line: %w", err)
	}
	for i := range records {
		line, err := json.Marshal(records[i].Spec)
		if err != nil {
			return fmt.Errorf("writing a record as JSON: %w", err)
		}
		line = append(line, '\n')
		if err := f.makeRoom(int64(len(line))); err != nil {
			return fmt.Errorf("writing the file to the disk: %w", err)
		}
		if _, err := f.out.Write(line); err != nil {
			f.mayBeTorn = true
			return fmt.Errorf("writing a line: %w", err)
		}
	}
	if f.path == "" {
		return nil
	}
	if err := syncTo(f.path); err != nil {
		return fmt.Errorf("writing the file to the disk: %w", err)
	}
	if f.isFolderOther {
		if err := syncTo(filepath.Dir(f.path)); err != nil {
			return fmt.Errorf("writing the folder of the file to the disk: %w", err)
		}
		f.isFolderOther = false
	}
	return nil
}

// endLine ends the last line if it has no end: what wrote it has failed, or was ended.
func (f *file) endLine() error {
	if !f.mayBeTorn {
		return nil
	}
	if f.path == "" {
		if _, err := io.WriteString(f.out, "\n"); err != nil {
			return err
		}
		f.mayBeTorn = false
		return nil
	}
	if err := f.close(); err != nil {
		return err // it may not know where the file ends
	}
	of, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f.mayBeTorn = false
		return nil
	}
	if err != nil {
		return err
	}
	defer of.Close()
	last := []byte{'\n'}
	if size, err := of.Seek(0, io.SeekEnd); err != nil {
		return err
	} else if size > 0 {
		if _, err := of.ReadAt(last, size-1); err != nil {
			return err
		}
	}
	if last[0] != '\n' {
		if _, err := of.Write([]byte{'\n'}); err != nil {
			return err
		}
	}
	f.mayBeTorn = false
	return nil
}

// makeRoom has the file be on the disk before a line of a length has another be begun.
func (f *file) makeRoom(length int64) error {
	if f.path == "" {
		return nil
	}
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.isFolderOther = true
	case err != nil:
		return err
	case info.Size()+length >= f.full:
		f.isFolderOther = true
		return syncTo(f.path)
	}
	return nil
}

// syncTo returns when a file or a folder is on the disk.
func syncTo(path string) error {
	of, err := os.Open(path) //nolint:gosec // the folder is the agent's, and a rule bounds the name
	if err != nil {
		return err
	}
	defer of.Close()
	return of.Sync()
}

// Close closes the file.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.close()
}

func (f *file) close() error {
	if closer, is := f.out.(*lumberjack.Logger); is {
		return closer.Close()
	}
	return nil
}
