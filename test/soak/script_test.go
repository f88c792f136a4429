package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestASeedAlwaysTellsTheSameStory(t *testing.T) {
	of := size{Placements: 3, Hollow: 5, Members: 2}
	for name, tell := range map[string]func(uint64, size) *script{"users": userScript, "world": worldScript} {
		t.Run(name, func(t *testing.T) {
			one, again, other := tell(7, of), tell(7, of), tell(8, of)
			seen, differs := map[string]bool{}, false
			for range 2000 {
				now := one.next()
				assert.Equal(t, now, again.next())
				differs = differs || now != other.next()
				seen[now.Verb] = true
				assert.Contains(t, acts, now.Verb)
			}
			assert.True(t, differs, "another seed tells another story")
			for _, v := range one.verbs {
				assert.True(t, seen[v.name], "%s never happens", v.name)
			}
		})
	}
}

func TestAFleetWithoutRealMembersIsToldOfToo(t *testing.T) {
	s := worldScript(1, size{Placements: 1, Hollow: 1})
	for range 500 {
		now := s.next()
		assert.NotContains(t, now.Target, "member-")
	}
}
