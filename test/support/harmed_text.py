"""Text with pieces taken out, doubled, exchanged and put in, for readers to refuse."""

from hypothesis import strategies as st

PIECES = ('"', '<', '/>', '&', '0', '-1', '1e400', 'nan', 'zero', 'true', '[]', '{}', '~', '*x', '&x', ': ', '\n', '- ',
          '? ', '|', '>', '%', '@', '\x00', '\u2028', '\ud800', '<<: ', '!!python/object/apply:os.abort []')


@st.composite
def harmed_text(draw, sound):
    text = draw(st.sampled_from(sound))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        another = draw(st.sampled_from(text.split() or ['']))
        inserted = draw(st.one_of(st.text(max_size=4), st.sampled_from([text[start:end] * 2, another, *PIECES])))
        text = text[:start] + inserted + text[end:]
    return text
