package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// shell runs one of the fleet's programs as a person would, prints the line and the answer, and returns the answer.
func (s *story) shell(ctx context.Context, program string, args ...string) (string, error) {
	s.screen.hold()
	defer s.screen.release()
	s.screen.stamped("$ %s", s.screen.paint(escBold, quoted(append([]string{program}, args...))))
	cmd := exec.CommandContext(ctx, s.Fleet.Path("bin", program), args...)
	cmd.Env = append(os.Environ(), s.Fleet.Environment()...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	err := cmd.Run()
	s.screen.output(stdout.String())
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", quoted(append([]string{program}, args...)), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// kubectl runs kubectl on the hub.
func (s *story) kubectl(ctx context.Context, args ...string) error {
	_, err := s.shell(ctx, "kubectl", args...)
	return err
}

// quoted writes a command line so that it can be pasted into a shell.
func quoted(words []string) string {
	line := make([]string, len(words))
	for i, word := range words {
		line[i] = word
		if strings.ContainsAny(word, " \"'{}$()*") {
			line[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(line, " ")
}
