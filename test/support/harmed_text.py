"""Text with pieces taken out, doubled and put in, for readers to refuse."""

from hypothesis import strategies as st


@st.composite
def harmed_text(draw, sound):
    text = draw(st.sampled_from(sound))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        inserted = draw(st.one_of(st.text(max_size=4), st.sampled_from([text[start:end] * 2, '"', '<', '/>', '&'])))
        text = text[:start] + inserted + text[end:]
    return text
