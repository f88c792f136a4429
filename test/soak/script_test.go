package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestASeedAlwaysTellsTheSameStory(t *testing.T) {
	of := size{Placements: 3, Hollow: 5, Members: 2}
	for name, tell := range map[string]func(uint64, size) *script{
		"users": userScript,
		"world": func(seed uint64, of size) *script { return worldScript(seed, of, false) },
	} {
		t.Run(name, func(t *testing.T) {
			one := tell(7, of)
			again := tell(7, of)
			other := tell(8, of)
			seen := map[string]bool{}
			differs := false
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
	s := worldScript(1, size{Placements: 1, Hollow: 1}, false)
	for range 500 {
		now := s.next()
		assert.NotContains(t, now.Target, "member-")
	}
}

func TestAnUpgradeExchangesAgents(t *testing.T) {
	of := size{Placements: 1, Hollow: 3, Members: 1}
	agents := map[string]bool{}
	s := worldScript(1, of, true)
	for range 500 {
		if now := s.next(); now.Verb == "exchange" {
			assert.Contains(t, []string{theOld, theNew}, now.Kind)
			agents[now.Target] = true
		}
	}
	assert.Equal(t, map[string]bool{"hub-agent": true, beside: true, "member-1/agent": true}, agents)
}

func TestTheSecondHubAgentListensElsewhereAndUsesNoLink(t *testing.T) {
	assert.Equal(t, []string{"--leader-elect", "--kubeconfig", "other", "--temporal-address", "127.0.0.1:7233", "--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0", "--enable-pprof=false"},
		besideArguments([]string{"/bin/hub-agent", "--leader-elect", "--kubeconfig", "own", "--temporal-address", "127.0.0.1:7233", "--metrics-bind-address", "127.0.0.1:4000", "--health-probe-bind-address", "127.0.0.1:4001", "--enable-pprof", "--temporal-address=127.0.0.1:5000"}, "other"))
}
