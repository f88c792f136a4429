package realnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// childrenOf returns the children of all threads of a process.
func childrenOf(pid int) ([]int, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, fmt.Errorf("looking for the threads of process %d: %w", pid, err)
	}
	var children []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended
		}
		for text := range strings.FieldsSeq(string(content)) {
			if child, err := strconv.Atoi(text); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, nil
}
